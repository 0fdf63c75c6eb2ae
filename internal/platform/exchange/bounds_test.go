package exchange

import (
	"strconv"
	"testing"
	"time"
)

func TestBudgetIsBounded(t *testing.T) {
	t.Parallel()
	b := &Budget{}
	b.Refused("silenced", time.Hour)
	for i := range 3 * maxBuckets {
		_ = b.Try(t.Context(), "a", Share{Bucket: strconv.Itoa(i), Every: time.Second, Burst: 2})
		b.Refused(strconv.Itoa(i), time.Nanosecond)
	}
	if len(b.buckets) > maxBuckets || len(b.silent) > maxBuckets {
		t.Errorf("%d buckets, %d silences", len(b.buckets), len(b.silent))
	}
	if b.Try(t.Context(), "silenced") == nil {
		t.Error("a silence that holds was forgotten")
	}
}
