package emit

import "google.golang.org/protobuf/compiler/protogen"

func (g *writer) handler(s *protogen.Service) {
	g.doc(handlerName(s)+" handles the messages of service "+string(s.Desc.FullName())+" in a context "+g.context+".\n"+
		dispatchName(s)+" picks the method by the type of the message.",
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
		g.doc(orElse(text(m.Comments), m.GoName+" takes "+in.GoName+", which is not answered."), rpcDeprecation(m))
		g.P(m.GoName, "(", ctx, " ", g.context, ", ", msg, " *", in, ")")
		return
	}
	g.doc(orElse(text(m.Comments), m.GoName+" takes "+in.GoName+" and answers "+out.GoName+", now or later."), rpcDeprecation(m))
	g.P(m.GoName, "(", ctx, " ", g.context, ", ", msg, " *", in, ", ", reply, " ", askPackage.Ident("Reply"), "[*", out, "])")
}

func (g *writer) dispatch(s *protogen.Service) {
	h, ctx, msg, from := g.local("h"), g.local("ctx"), g.local("msg"), g.local("from")
	g.doc(dispatchName(s)+" calls the method of "+h+" for the type of "+msg+", which "+from+" (may be nil) has sent.\n"+
		"It reports whether "+msg+" is a message of service "+string(s.Desc.Name())+".",
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
	g.doc(messagesName(s)+" gives an empty value of each message that service "+string(s.Desc.Name())+" takes, in its order.",
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
