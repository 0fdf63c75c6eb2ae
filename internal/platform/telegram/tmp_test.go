package telegram
import ("testing";"strings";"time";"remote-agent/internal/platform")
func TestTmpPatho(t *testing.T){
 r:=newRenderer()
 for name,unit:=range map[string]string{"quote":">","br":"[","brlink":"[a](","star":"*","starA":"*a ","a**b":"a**b","bang":"![","tick":"`a","list":"- ","pipe":"|a","table":"|a|\n|-|\n","nl":"\n","amp":"&","lt":"<a ","under":"_a_b","tilde":"~~a","para":"Hello **world** and `code` text here.\n\n","nest":"- a\n","html":"<div>\n","comment":"<!-- ","ordered":"1. a\n   "} {
  for _,n:=range []int{16<<10,64<<10}{
  in:=strings.Repeat(unit,n/len(unit))
  s:=time.Now(); l:=r.measure(in); d:=time.Since(s)
  if d>100*time.Millisecond { t.Logf("%s %d: measure %v len %d",name,n,d,l)}
  s=time.Now(); p:=platform.Split(in,4096,r.measure); d=time.Since(s)
  if d>300*time.Millisecond{ t.Logf("%s %d: split %v parts %d",name,n,d,len(p))}
  }
 }
 in:=strings.Repeat("## T\n\nHello **world** and `code` text here.\n\n- a\n- b\n\n```go\nx := 1\n```\n\n",1<<20/70)
 s:=time.Now(); p:=platform.Split(in,4096,r.measure); t.Logf("1MB typical %v parts %d",time.Since(s),len(p))
}
func BenchmarkNest(b *testing.B){ r:=newRenderer(); in:=strings.Repeat("- a\n",32000); b.ReportAllocs(); for b.Loop(){ r.measure(in)}}
func BenchmarkPara(b *testing.B){ r:=newRenderer(); in:=strings.Repeat("Hello **world** and `code` text here.\n\n",100); b.ReportAllocs(); for b.Loop(){ r.measure(in)}}
func BenchmarkRender(b *testing.B){ r:=newRenderer(); in:=strings.Repeat("Hello **world** and `code` text here.\n\n- a\n- b\n\n",20); b.ReportAllocs(); for b.Loop(){ r.measure(in)}}
