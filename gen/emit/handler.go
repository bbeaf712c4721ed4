package emit

import (
	"cmp"

	"google.golang.org/protobuf/compiler/protogen"
)

func (g *writer) handler(s *protogen.Service) {
	g.doc(handlerName(s)+" handles the messages of service "+string(s.Desc.FullName())+", in a context of type "+g.context+".\n"+
		dispatchName(s)+" calls its methods by message type.",
		text(s.Comments), serviceDeprecation(s))
	g.P("type ", handlerName(s), g.generic(), " interface {")
	for i, m := range s.Methods {
		if i > 0 {
			g.P()
		}
		g.handlerMethod(m)
	}
	g.P("}")
	g.P()
}

func (g *writer) handlerMethod(m *protogen.Method) {
	ctx, msg, reply := g.local("ctx"), g.local("msg"), g.local("reply")
	in, out := m.Input.GoIdent, m.Output.GoIdent
	if oneWay(m) {
		g.doc(cmp.Or(text(m.Comments), m.GoName+" handles a "+in.GoName+", which has no answer."), rpcDeprecation(m))
		g.P(m.GoName, "(", ctx, " ", g.context, ", ", msg, " *", in, ")")
		return
	}
	g.doc(cmp.Or(text(m.Comments), m.GoName+" handles a "+in.GoName+". The answer by reply, now or later, is a "+out.GoName+" or an error."), rpcDeprecation(m))
	g.P(m.GoName, "(", ctx, " ", g.context, ", ", msg, " *", in, ", ", reply, " ", askPackage.Ident("Reply"), "[*", out, "])")
}

// ignore emits a handler to embed: it lacks no method, and does nothing.
func (g *writer) ignore(s *protogen.Service) {
	g.doc(ignoreName(s)+" is the "+handlerName(s)+" that ignores all messages and answers none.\n"+
		"Embed it in a handler that takes some of the messages only.",
		serviceDeprecation(s))
	g.P("type ", ignoreName(s), g.generic(), " struct{}")
	g.P()
	for _, m := range s.Methods {
		g.doc(m.GoName+" ignores "+m.Input.GoIdent.GoName+".", rpcDeprecation(m))
		args := []any{"func (", ignoreName(s), "[", g.context, "]) ", m.GoName, "(", g.context, ", *", m.Input.GoIdent}
		if !oneWay(m) {
			args = append(args, ", ", askPackage.Ident("Reply"), "[*", m.Output.GoIdent, "]")
		}
		g.P(append(args, ") {}")...)
		g.P()
	}
}

func (g *writer) dispatch(s *protogen.Service) {
	h, ctx, msg, from := g.local("h"), g.local("ctx"), g.local("msg"), g.local("from")
	g.doc(dispatchName(s)+" calls the method of "+h+" for the type of "+msg+", and reports whether\n"+
		msg+" is a message of service "+string(s.Desc.Name())+". Answers go to "+from+", the sender, which may be nil.",
		serviceDeprecation(s))
	g.P("func ", dispatchName(s), g.generic(), "(", h, " ", handlerName(s), "[", g.context, "], ", ctx, " ", g.context, ", ",
		msg, " any, ", from, " ", askPackage.Ident("Recipient"), ") bool {")
	if len(s.Methods) > 0 {
		g.P("switch ", msg, " := ", msg, ".(type) {")
		for _, m := range s.Methods {
			g.dispatchCase(m)
		}
		g.P("}")
	}
	g.P("return false")
	g.P("}")
	g.P()
}

func (g *writer) dispatchCase(m *protogen.Method) {
	args := []any{g.local("h"), ".", m.GoName, "(", g.local("ctx"), ", ", g.local("msg")}
	if !oneWay(m) {
		args = append(args, ", ", askPackage.Ident("ReplyTo"), "[*", m.Output.GoIdent, "](", g.local("from"), ")")
	}
	g.P("case *", m.Input.GoIdent, ":")
	g.P(append(args, ")")...)
	g.P("return true")
}

func (g *writer) messages(s *protogen.Service) {
	message := protoPackage.Ident("Message")
	g.doc(messagesName(s)+" returns an empty value of each request type of service "+string(s.Desc.Name())+", in the order of its rpcs.",
		serviceDeprecation(s))
	g.P("func ", messagesName(s), "() []", message, " {")
	g.P("return []", message, "{")
	for _, m := range s.Methods {
		g.P("new(", m.Input.GoIdent, "),")
	}
	g.P("}")
	g.P("}")
	g.P()
}
