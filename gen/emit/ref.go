package emit

import "google.golang.org/protobuf/compiler/protogen"

func (g *writer) ref(s *protogen.Service) {
	g.doc(refName(s)+" sends the messages of service "+string(s.Desc.FullName())+" to an actor.",
		text(s.Comments), serviceDeprecation(s))
	g.P("type ", refName(s), " struct {")
	g.P("// To is the actor.")
	g.P("To ", askPackage.Ident("Recipient"))
	g.P("}")
	g.P()
	for _, m := range s.Methods {
		if oneWay(m) {
			g.tell(s, m)
		} else {
			g.ask(s, m)
		}
		g.send(s, m)
	}
}

// tell sends a message that is not answered.
func (g *writer) tell(s *protogen.Service, m *protogen.Method) {
	r, msg := g.local("r"), g.local("msg")
	g.doc(orElse(text(m.Comments), m.GoName+" sends "+m.Input.GoIdent.GoName+", which is not answered."), rpcDeprecation(m))
	g.P("func (", r, " ", refName(s), ") ", m.GoName, "(", msg, " *", m.Input.GoIdent, ") {")
	g.P(r, ".To.Tell(", msg, ")")
	g.P("}")
	g.P()
}

// ask sends a message and makes a future of its answer.
func (g *writer) ask(s *protogen.Service, m *protogen.Method) {
	r, msg, out := g.local("r"), g.local("msg"), m.Output.GoIdent
	g.doc(orElse(text(m.Comments), m.GoName+" sends "+m.Input.GoIdent.GoName+"."),
		"The future completes with the answer or an error.", rpcDeprecation(m))
	g.P("func (", r, " ", refName(s), ") ", m.GoName, "(", msg, " *", m.Input.GoIdent, ") *", askPackage.Ident("Future"), "[*", out, "] {")
	g.P("return ", askPackage.Ident("Ask"), "[*", out, "](", r, ".To, ", msg, ")")
	g.P("}")
	g.P()
}

// send names the sender, to whom an answer comes as a message.
func (g *writer) send(s *protogen.Service, m *protogen.Method) {
	r, msg, from := g.local("r"), g.local("msg"), g.local("from")
	does := sendName(m) + " is " + m.GoName + " with " + from + " as the sender"
	if !oneWay(m) {
		does += ", who gets the answer as a message"
	}
	g.doc(does+".", rpcDeprecation(m))
	g.P("func (", r, " ", refName(s), ") ", sendName(m), "(", msg, " *", m.Input.GoIdent, ", ", from, " ", askPackage.Ident("Recipient"), ") {")
	g.P(askPackage.Ident("Send"), "(", r, ".To, ", msg, ", ", from, ")")
	g.P("}")
	g.P()
}
