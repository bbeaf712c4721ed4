"use strict";
// The page keeps a copy of the server's locks, which comes as server-sent events: "locks" has those
// that have changed, "state" the connection to ZooKeeper and what is missing. All text of others (paths,
// owners, data) is set as text, never as HTML, and by plain.

const shown = 8; // contenders of a queue that a row shows
const locks = new Map(); // by path: {lock, row, visible}
const $ = id => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
let ahead = 0; // of the server's clock, in milliseconds
let revocable = false;
let skipped = ""; // why locks may be missing
let handedOff = []; // times of the last minute
const asked = new Map(); // what became of asking the holder with a node to release

const visible = new IntersectionObserver(entries => {
	for (const e of entries) locks.get(e.target.dataset.path).visible = e.isIntersecting;
	tick();
});

function connect() {
	const events = new EventSource("events");
	events.addEventListener("state", e => {
		const s = JSON.parse(e.data);
		ahead = Date.parse(s.now) - Date.now();
		revocable = s.revocable;
		$("root").textContent = plain(s.root);
		$("below").hidden = false;
		document.title = `Locks below ${plain(s.root)}`;
		skipped = s.skipped || "";
		$("skipped").textContent = plain(skipped);
		$("skipped").hidden = !skipped;
		arrange();
		const fine = s.state === "CONNECTED";
		session(fine ? "CONNECTED" : "trouble", fine ? `connected, session ${s.id}` :
			`ZooKeeper: ${s.state} since ${clock(s.since)}; what is shown may be old`);
	});
	events.addEventListener("locks", e => update(JSON.parse(e.data)));
	events.onerror = () => session("trouble", `the page's server does not answer since ${clock(new Date())}; trying again`);
}

function session(state, text) {
	$("session").dataset.state = state;
	$("session-text").textContent = text;
}

function update({whole, changed, groups, gone}) {
	updateGroups(whole, groups || [], gone || []);
	if (whole) {
		const now = new Set(changed.map(l => l.path));
		gone = [...locks.keys()].filter(path => !now.has(path));
	}
	for (const path of gone || []) {
		const known = locks.get(path);
		if (!known) continue;
		visible.unobserve(known.row);
		known.row.remove();
		locks.delete(path);
	}
	for (const lock of changed || []) put(lock, whole);
	arrange();
	totals();
}

function put(lock, whole) {
	let known = locks.get(lock.path);
	if (!known) {
		known = {row: makeRow(lock.path), visible: false};
		locks.set(lock.path, known);
		visible.observe(known.row);
	} else if (!whole) {
		noteHandoff(known.lock, lock);
	}
	known.lock = lock;
	known.text = [lock.path, lock.recipe, ...lock.contenders.flatMap(c => [c.owner, c.host, c.program, c.session, c.data])].join("\n").toLowerCase();
	fill(known);
}

function makeRow(path) {
	const row = $("lock").content.cloneNode(true).firstElementChild;
	row.dataset.path = path;
	row.querySelector(".path").textContent = plain(path);
	row.querySelector(".head").addEventListener("click", () => toggle(row));
	return row;
}

function fill({row, lock}) {
	const holders = lock.contenders.filter(c => c.holds).length;
	row.classList.toggle("free", holders === 0);
	row.querySelector(".recipe").textContent = lock.error ? plain(lock.error) : [lock.recipe, lock.permits ? `${lock.permits} permits` : "",
		waiting(lock.contenders.length - holders)].filter(Boolean).join(" · ");
	const queue = row.querySelector(".queue");
	const before = new Map([...queue.children].map(e => [e.dataset.node, e]));
	const places = locks.get(lock.path).visible && !still.matches ? new Map([...before].map(([node, e]) => [node, e.getBoundingClientRect()])) : new Map();
	const entries = lock.contenders.slice(0, shown).map(c => fillEntry(before.get(c.node) || document.createElement("li"), c));
	if (lock.contenders.length > shown) entries.push(note("more", `and ${lock.contenders.length - shown} more`));
	if (lock.contenders.length === 0 && !lock.error) entries.push(note("nobody", "free"));
	queue.replaceChildren(...entries);
	for (const e of entries) move(e, places.get(e.dataset.node), places.size > 0);
	if (!row.querySelector(".whole").hidden) fillWhole(row, lock);
}

function fillEntry(e, c) {
	const was = e.className;
	e.dataset.node = c.node;
	e.className = c.holds ? "holds" : "waits";
	e.title = plain(c.node);
	const age = document.createElement("small");
	if (c.held_since || c.since) age.dataset.since = c.held_since || c.since;
	age.dataset.queued = c.holds && !c.held_since; // since when it holds is not known
	e.replaceChildren(`${c.holds ? "holds:" : c.place + "."} ${kind(c)}${name(c)} `, age);
	showAge(age);
	if (was === "waits" && c.holds && !still.matches) {
		e.animate([{boxShadow: "0 0 0 4px var(--flash)"}, {boxShadow: "0 0 0 0 transparent"}], 1500);
	}
	return e;
}

function note(className, text) {
	const e = document.createElement("li");
	e.className = className;
	e.textContent = text;
	return e;
}

// move animates an entry of a queue from its former place.
function move(e, from, animated) {
	if (!animated) return;
	const to = e.getBoundingClientRect();
	if (!from) {
		e.animate([{opacity: 0}, {opacity: 1}], 250);
	} else if (from.left !== to.left || from.top !== to.top) {
		e.animate([{transform: `translate(${from.left - to.left}px, ${from.top - to.top}px)`}, {transform: "none"}], {duration: 250, easing: "ease-out"});
	}
}

const columns = [["place", c => c.holds ? "holds" : c.place], ["kind", c => c.kind], ["owner", c => c.owner], ["program", c => c.program],
	["host", c => c.host], ["pid", c => c.pid], ["queued", c => c.since ? `${clock(c.since)} (${age(c.since)})` : ""], ["held since", c => c.held_since ? `${clock(c.held_since)} (${age(c.held_since)})` : ""], ["permits", c => c.permits], ["session", c => c.persistent ? "none (persistent)" : c.session],
	["token", c => c.token], ["node", c => plain(c.node.slice(c.node.lastIndexOf("/") + 1))], ["data", c => c.data]];

function fillWhole(row, lock) {
	const table = document.createElement("table");
	const head = table.createTHead().insertRow();
	const filled = columns.filter(([, value]) => lock.contenders.some(c => (value(c) ?? "") !== ""));
	for (const [title] of filled) head.append(Object.assign(document.createElement("th"), {textContent: title, scope: "col"}));
	const body = table.createTBody();
	for (const c of lock.contenders) {
		const line = body.insertRow();
		line.className = c.holds ? "holds" : "";
		for (const [title, value] of filled) {
			const cell = line.insertCell();
			cell.className = title.replace(" ", "-");
			cell.textContent = value(c) ?? "";
		}
		if (revocable && c.holds) {
			const ask = Object.assign(document.createElement("button"), {type: "button", disabled: asked.has(c.node),
				textContent: asked.get(c.node) || "ask to release"});
			ask.addEventListener("click", () => revoke(c, row));
			line.cells[0].append(" ", ask);
		}
	}
	row.querySelector(".whole").replaceChildren(lock.contenders.length ? table : "The lock is free.");
}

async function revoke(c, row) {
	if (!confirm(`Ask ${name(c)} to release?\n${plain(c.node)}`)) return;
	const answer = await fetch("revoke", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({node: c.node})});
	asked.set(c.node, answer.ok ? "asked" : await answer.text());
	if (locks.has(row.dataset.path)) fill(locks.get(row.dataset.path));
}

function toggle(row, open = row.querySelector(".whole").hidden) {
	row.querySelector(".whole").hidden = !open;
	row.querySelector(".head").setAttribute("aria-expanded", open);
	if (open) fillWhole(row, locks.get(row.dataset.path).lock);
}

function noteHandoff(before, now) {
	const were = before.contenders.filter(c => c.holds), held = new Set(were.map(c => c.node));
	const left = were.filter(c => !now.contenders.some(n => n.node === c.node));
	const next = now.contenders.filter(c => c.holds && !held.has(c.node));
	if (!left.length || !next.length) return;
	const at = Date.now();
	handedOff = [...handedOff.filter(t => t > at - 60000), at];
	const e = document.createElement("li");
	const path = document.createElement("span");
	path.className = "path";
	path.textContent = ` ${plain(now.path)}`;
	const names = document.createElement("span");
	names.className = "names";
	names.textContent = `${left.map(name).join(", ")} → ${next.map(name).join(", ")}`;
	const time = document.createElement("time");
	time.textContent = new Date(at + ahead).toLocaleTimeString();
	e.append(time, path, names);
	$("handoffs").prepend(e);
	while ($("handoffs").children.length > 100) $("handoffs").lastChild.remove();
}

// arrange shows the locks that the search finds, in their order. It moves as few rows as it can.
function arrange() {
	const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
	const by = {
		path: () => 0,
		waiters: (a, b) => b.lock.contenders.length - a.lock.contenders.length,
		queued: (a, b) => queuedSince(a.lock) - queuedSince(b.lock),
	}[$("order").value];
	const all = [...locks.values()].sort((a, b) => by(a, b) || (a.lock.path < b.lock.path ? -1 : 1));
	let at = $("locks").firstElementChild, found = 0;
	for (const known of all) {
		known.row.hidden = !words.every(w => known.text.includes(w));
		found += !known.row.hidden;
		if (known.row === at) at = at.nextElementSibling;
		else $("locks").insertBefore(known.row, at);
	}
	$("none").hidden = found > 0;
	$("none").textContent = words.length ? `No lock has “${$("search").value}” in its path, owners, hosts or sessions.` :
		skipped ? "No lock was found, and the list is not complete." : "There is no lock here: no client holds one or waits for one.";
}

function totals() {
	let held = 0, waiters = 0;
	for (const {lock} of locks.values()) {
		const holders = lock.contenders.filter(c => c.holds).length;
		held += holders > 0;
		waiters += lock.contenders.length - holders;
	}
	$("totals").textContent = `${locks.size} ${locks.size === 1 ? "lock" : "locks"} · ${held} held · ${waiting(waiters)}`;
}

function tick() {
	for (const known of locks.values()) {
		if (known.visible) known.row.querySelectorAll("[data-since]").forEach(showAge);
	}
	const last = handedOff.filter(t => t > Date.now() - 60000).length;
	$("rate").textContent = last ? `${last} in the last minute` : "";
}

const showAge = e => { if (e.dataset.since) e.textContent = (e.dataset.queued === "true" ? "queued " : "") + age(e.dataset.since) + (e.dataset.queued === "true" ? " ago" : ""); };
const queuedSince = lock => Math.min(...lock.contenders.filter(c => c.holds && c.since).map(c => Date.parse(c.since)), Infinity);
const waiting = n => n === 0 ? "no waiters" : n === 1 ? "1 waiter" : `${n} waiters`;
const kind = c => c.kind && c.kind !== "exclusive" ? c.kind + " · " : "";
const clock = time => new Date(time).toLocaleTimeString();

// plain returns a text with the characters that have no form of their own, or change the order of others, as escapes.
const plain = text => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, c => `\\u{${c.codePointAt(0).toString(16)}}`);

// name returns how a contender is called: by its owner or program, else by its session.
function name(c) {
	const process = c.host ? `${c.program || "process"}@${c.host}${c.pid ? ":" + c.pid : ""}` : "";
	return [c.owner, process].filter(Boolean).join(" · ") || (c.persistent ? "a persistent node" : `session ${c.session}`);
}

function age(since) {
	const s = Math.max(0, Math.round((Date.now() + ahead - Date.parse(since)) / 1000));
	return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min` : `${Math.floor(s / 86400)} d`;
}

function key(e) {
	if (e.ctrlKey || e.metaKey || e.altKey) return;
	const typing = e.target.matches("input, select");
	const heads = [...document.querySelectorAll(".lock:not([hidden]) .head")];
	const at = heads.indexOf(document.activeElement);
	if (e.key === "Escape") {
		if (typing) { $("search").value = ""; arrange(); heads[0]?.focus(); document.activeElement.blur?.(); }
		else document.querySelectorAll(".lock").forEach(row => toggle(row, false));
	} else if (typing) {
		if (e.key === "ArrowDown" && e.target === $("search")) { heads[0]?.focus(); e.preventDefault(); }
	} else if (e.key === "/") { $("search").focus(); $("search").select(); e.preventDefault(); }
	else if (e.key === "j" || e.key === "ArrowDown" && at >= 0) { heads[Math.min(at + 1, heads.length - 1)]?.focus(); e.preventDefault(); }
	else if (e.key === "k" || e.key === "ArrowUp" && at >= 0) { heads[Math.max(at - 1, 0)]?.focus(); e.preventDefault(); }
	else if (e.key === "?") $("help").click();
}

addEventListener("keydown", key);
$("search").form.addEventListener("submit", e => e.preventDefault());
$("search").addEventListener("input", arrange);
$("order").addEventListener("change", arrange);
$("theme").addEventListener("click", () => {
	const root = document.documentElement;
	const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	root.dataset.theme = dark ? "light" : "dark";
});
$("help").addEventListener("click", () => {
	$("keys").hidden = !$("keys").hidden;
	$("help").setAttribute("aria-expanded", !$("keys").hidden);
});
setInterval(tick, 1000);
connect();
