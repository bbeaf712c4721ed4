package embedded

import "slices"

// multiOp is one operation of a multi.
type multiOp struct {
	op      Op
	create  *createRequest
	path    string
	data    []byte
	version int32
}

func decodeMulti(d *decoder) ([]multiOp, bool) {
	var ops []multiOp
	for {
		kind, done := Op(d.int()), d.bool()
		d.int() // error, unused in requests
		if d.bad {
			return nil, false
		}
		if done {
			return ops, true
		}
		o := multiOp{op: kind}
		switch kind {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			o.create = decodeCreate(kind, d)
			o.create.op = multiCreateOp(kind, o.create.flags)
			o.op = o.create.op
		case OpDelete, OpCheck:
			o.path, o.version = d.string(), d.int()
		case OpSetData:
			o.path, o.data, o.version = d.string(), d.buffer(), d.int()
		case OpGetData, OpGetChildren:
			o.path = d.string()
			d.bool() // watch, ignored in a multi
		default:
			return nil, false
		}
		if len(ops) > 0 && o.reads() != ops[0].reads() {
			return nil, false
		}
		ops = append(ops, o)
	}
}

func (o multiOp) reads() bool { return o.op == OpGetData || o.op == OpGetChildren }

// hasUnknownFlags reports whether a create has flags that no create without a TTL has. Since
// [create2HasStat] such a multi is malformed.
func (o multiOp) hasUnknownFlags() bool {
	return o.create != nil && o.op != OpCreateTTL && (o.create.flags < 0 || o.create.flags > 4)
}

// multiCreateOp says what a create in a multi is: there the flags decide, not
// the operation's type. A TTL without its duration is OpAny: it cannot run.
func multiCreateOp(kind Op, flags int32) Op {
	switch timed := flags == 5 || flags == 6; {
	case timed && kind == OpCreateTTL:
		return OpCreateTTL
	case timed:
		return OpAny
	case flags == 4:
		return OpCreateContainer
	case kind == OpCreate2:
		return OpCreate2
	default:
		return OpCreate
	}
}

// runMulti executes all operations or none. The reply then names the error
// of the operation that failed, 0 for those before it, and
// RuntimeInconsistency for those after it. The reply as a whole is no error.
func (x *txn) runMulti(d *decoder, e *encoder) code {
	ops, ok := decodeMulti(d)
	if !ok || x.release.has(create2HasStat) && slices.ContainsFunc(ops, multiOp.hasUnknownFlags) {
		return codeMarshallingError
	}
	x.multi = true
	for i, o := range ops {
		err := x.runOne(o, e)
		if err == codeOK {
			continue
		}
		x.rollback()
		if err == codeMarshallingError {
			return err
		}
		e.b = e.b[:0]
		for j := range ops {
			switch {
			case j < i:
				e.multiError(codeOK)
			case j == i:
				e.multiError(err)
			default:
				e.multiError(codeRuntimeInconsistency)
			}
		}
		break
	}
	e.multiEnd()
	return codeOK
}

func (x *txn) runOne(o multiOp, e *encoder) code {
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		if o.op != OpCreateTTL {
			o.create.ttl = -1
		}
		n, err := x.create(o.create)
		if err != codeOK {
			return err
		}
		if o.op == OpCreate || o.op == OpCreate2 && !x.release.has(create2HasStat) {
			e.multiHeader(int32(OpCreate), codeOK)
			e.string(n.path)
			return codeOK
		}
		e.multiHeader(int32(OpCreate2), codeOK)
		e.string(n.path)
		e.stat(n.stat())
		return codeOK
	case OpDelete:
		e.multiHeader(int32(OpDelete), codeOK)
		return x.delete(o.path, o.version)
	case OpSetData:
		e.multiHeader(int32(OpSetData), codeOK)
		return withStat(e)(x.setData(o.path, o.data, o.version))
	case OpCheck:
		e.multiHeader(int32(OpCheck), codeOK)
		return x.check(o.path, o.version)
	default:
		return codeMarshallingError // a read, or a TTL without its duration
	}
}

func (e *encoder) multiHeader(kind int32, err code) {
	e.int(kind)
	e.bool(false)
	e.int(int32(err))
}

func (e *encoder) multiError(err code) {
	e.multiHeader(opError, err)
	e.int(int32(err))
}

func (e *encoder) multiEnd() {
	e.int(-1)
	e.bool(true)
	e.int(-1)
}
