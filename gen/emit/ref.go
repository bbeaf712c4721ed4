package emit

import (
	"cmp"

	"google.golang.org/protobuf/compiler/protogen"
)

func (g *writer) ref(s *protogen.Service) {
	g.doc(refName(s)+" sends the messages of service "+string(s.Desc.FullName())+" to an actor.",
		text(s.Comments), serviceDeprecation(s))
	g.P("type ", refName(s), " struct {")
	g.P("// To is the actor that receives the messages.")
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

// tell writes the method that sends the message of a one-way rpc.
func (g *writer) tell(s *protogen.Service, m *protogen.Method) {
	r, msg := g.local("r"), g.local("msg")
	g.doc(cmp.Or(text(m.Comments), m.GoName+" sends a "+m.Input.GoIdent.GoName+", which has no answer."), rpcDeprecation(m))
	g.P("func (", r, " ", refName(s), ") ", m.GoName, "(", msg, " *", m.Input.GoIdent, ") {")
	g.P(r, ".To.Tell(", msg, ")")
	g.P("}")
	g.P()
}

// ask writes the method that sends a message and returns a future of its answer.
func (g *writer) ask(s *protogen.Service, m *protogen.Method) {
	r, msg, out := g.local("r"), g.local("msg"), m.Output.GoIdent
	g.doc(cmp.Or(text(m.Comments), m.GoName+" sends a "+m.Input.GoIdent.GoName+"."),
		m.GoName+" never blocks: the future completes with the answer or an error.", rpcDeprecation(m))
	g.P("func (", r, " ", refName(s), ") ", m.GoName, "(", msg, " *", m.Input.GoIdent, ") *", askPackage.Ident("Future"), "[*", out, "] {")
	g.P("return ", askPackage.Ident("Ask"), "[*", out, "](", r, ".To, ", msg, ")")
	g.P("}")
	g.P()
}

// send writes the method that sends a message with a sender.
func (g *writer) send(s *protogen.Service, m *protogen.Method) {
	r, msg, from := g.local("r"), g.local("msg"), g.local("from")
	doc := sendName(m) + " sends the message of " + m.GoName + " with the sender " + from + "."
	if !oneWay(m) {
		doc += " The answer arrives\nat " + from + " as a message."
	}
	g.doc(doc, rpcDeprecation(m))
	g.P("func (", r, " ", refName(s), ") ", sendName(m), "(", msg, " *", m.Input.GoIdent, ", ", from, " ", askPackage.Ident("Recipient"), ") {")
	g.P(askPackage.Ident("Send"), "(", r, ".To, ", msg, ", ", from, ")")
	g.P("}")
	g.P()
}
