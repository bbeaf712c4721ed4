package lockqueue

func (ev Failed) apply(s *State) {
	if e := s.entries.at(ev.Serial); e != nil {
		s.createFailed(e, ev)
	} else if s.awaitsMarker(ev.Serial) {
		s.markerFailed(ev.Reason)
	} else if ev.Serial == s.numbers.deletion {
		s.directoryDeleted(false)
	} else if ev.Serial == s.listing.serial {
		s.listing.serial, s.listing.again = 0, false
		s.refuseOutside(ev.Reason)
		s.assumeContended()
		s.readFailed(ev)
	} else if s.unwatch(ev.Serial) {
		s.readFailed(ev)
	}
}

// readFailed refuses the waiting requests: without the read nothing would wake them.
func (s *State) readFailed(ev Failed) {
	for _, e := range s.waitingInOrder() {
		s.refuseAll(e, ev.Reason)
	}
	// The holders are to be verified nevertheless.
	var ask []string
	for e := range own(s.holders) {
		if e.stage == held && s.watches[e.name] == nil && ev.Serial != s.watchAfterFailure {
			ask = append(ask, e.name)
		}
	}
	if len(ask) > 0 {
		s.requestWatch(ask, 0)
		s.watchAfterFailure = s.lastSerial
	}
}
