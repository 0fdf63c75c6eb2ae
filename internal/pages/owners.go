package pages

import (
	"net/http"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
)

// operations are the paths of what only owners see and do, and the costs.
func (p *Pages) operations() {
	p.page("GET /queue", ownersSee(p.queue))
	p.page("GET /audit", ownersSee(p.audit))
	p.act("POST /audit/verify", ownersDo(p.verifyAudit))
	p.page("GET /memory", p.memory)
	p.act("POST /memory/change", p.changeMemory)
	p.page("GET /people", ownersSee(p.people))
	p.act("POST /people/request", ownersDo(p.answerRequest))
	p.act("POST /people/change", ownersDo(p.changePerson))
	p.act("POST /queue/turn", ownersDo(p.queueTurn))
	p.act("POST /queue/delivery", ownersDo(p.queueDelivery))
	p.act("POST /queue/schedule", ownersDo(p.queueSchedule))
	p.page("GET /costs", p.costs)
	p.file("GET /costs.csv", p.costsCSV)
	p.page("GET /platforms", ownersSee(p.platforms))
	p.act("POST /platforms/test", ownersDo(p.testPlatform))
	p.page("GET /agents/new", ownersSee(p.newProfile))
	p.act("POST /agents/new", ownersDo(p.saveProfile))
	p.page("GET /agents/{id}", ownersSee(p.profile))
	p.act("POST /agents/{id}", ownersDo(p.saveProfile))
	p.act("POST /agents/{id}/delete", ownersDo(p.deleteProfile))
	p.page("GET /settings", ownersSee(p.settings))
	p.act("POST /settings/check", ownersDo(p.runChecks))
	p.page("GET /setup", ownersSee(p.setupList))
	p.page("GET /setup/{step}", ownersSee(p.setupStep))
	p.act("POST /setup/{step}", ownersDo(p.setUp))
	p.file("GET /setup/{step}/back", p.setupBack)
	if p.About.Backups != nil {
		p.page("GET /backups", ownersSee(p.backups))
		p.file("GET /backups/{name}/download", p.downloadBackup)
		p.act("POST /backups/create", ownersDo(p.createBackup))
		p.act("POST /backups/verify", ownersDo(p.verifyBackup))
	}
}

func ownersSee(show func(r *request) (view, error)) func(r *request) (view, error) {
	return func(r *request) (view, error) {
		if !r.owner() {
			return view{}, fault.New(fault.Forbidden, "Only owners can see this page.")
		}
		return show(r)
	}
}

func ownersDo(do func(w http.ResponseWriter, r *request) (outcome, error)) func(w http.ResponseWriter, r *request) (outcome, error) {
	return func(w http.ResponseWriter, r *request) (outcome, error) {
		if !r.owner() {
			return outcome{}, fault.New(fault.Forbidden, "Only owners can do this.")
		}
		return do(w, r)
	}
}

// section is a heading with what is below it, or with what would be there.
func section(id, heading string, list html.Group, teach string) html.Node {
	if len(list) == 0 {
		return html.Group{html.El("h2", html.ID(id), html.Text(heading)), empty(html.Text(teach))}
	}
	return html.Group{html.El("h2", html.ID(id), html.Text(heading)), html.El("ul", html.Class("list"), list)}
}
