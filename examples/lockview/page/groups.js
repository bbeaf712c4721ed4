"use strict";
// Groups that share partitions: a grid with a cell for each partition, in the colour of its leader.

const groups = new Map(); // by path: {row, leaders (ids, or ""), led (ids: the last leaders), moves (times)}

function updateGroups(whole, changed, gone) {
	if (whole) {
		const now = new Set(changed.map(g => g.path));
		gone = [...groups.keys()].filter(path => !now.has(path));
	}
	for (const path of gone) {
		groups.get(path)?.row.remove();
		groups.delete(path);
	}
	for (const group of changed) putGroup(group);
}

function putGroup(group) {
	let known = groups.get(group.path);
	if (!known) {
		known = {row: document.getElementById("group").content.cloneNode(true).firstElementChild, leaders: [], led: [], moves: []};
		known.row.dataset.group = group.path;
		known.row.querySelector(".path").textContent = plain(group.path);
		groups.set(group.path, known);
		const after = [...document.querySelectorAll(".group")].find(e => e.dataset.group > group.path);
		document.getElementById("groups").insertBefore(known.row, after || null);
	}
	const leads = group.members.map(() => 0);
	const grid = known.row.querySelector(".grid");
	while (grid.children.length < group.leaders.length) grid.append(document.createElement("i"));
	group.leaders.forEach((at, n) => {
		const member = group.members[at], id = member ? member.id : "";
		if (member) leads[at]++;
		const cell = grid.children[n], before = known.leaders[n];
		if (before === id) return;
		cell.classList.toggle("nobody", !member);
		cell.title = `partition ${n}: ${member ? memberName(member) : "nobody leads it"}`;
		if (member) cell.style.setProperty("--of", colour(id));
		if (member && known.led[n] && known.led[n] !== id) {
			known.moves.push(Date.now());
			if (!still.matches) cell.animate([{boxShadow: "0 0 0 4px var(--flash)"}, {boxShadow: "0 0 0 0 transparent"}], 1500);
		}
		known.leaders[n] = id;
		if (member) known.led[n] = id;
	});
	const without = group.leaders.filter(at => at < 0).length;
	known.text = [`${group.leaders.length} partitions`, group.members.length === 1 ? "1 member" : `${group.members.length} members`,
		without ? `${without} without a leader` : "", group.error ? plain(group.error) : ""].filter(Boolean).join(" · ");
	known.row.querySelector(".members").replaceChildren(...group.members.map((m, i) => {
		const e = document.createElement("li");
		e.style.setProperty("--of", colour(m.id));
		e.textContent = `${memberName(m)}: ${leads[i]}${m.waits ? `, waits for ${m.waits}` : ""}`;
		e.title = `member ${m.id}`;
		return e;
	}));
	showMoves(known);
	grid.setAttribute("aria-label", `Partitions: ${group.members.map((m, i) => `${memberName(m)} leads ${leads[i]}`).join(", ")}`);
}

// showMoves shows how many partitions have another leader than a minute ago, or had one meanwhile.
function showMoves(known) {
	known.moves = known.moves.filter(t => t > Date.now() - 60000);
	const moved = known.moves.length ? ` · ${known.moves.length} moved in the last minute` : "";
	const sum = known.row.querySelector(".sum");
	if (sum.textContent !== known.text + moved) sum.textContent = known.text + moved;
}

const memberName = m => plain(m.data) || `member ${m.id}`;

// colour returns the colour of a member, which stays the same as long as it is a member.
function colour(id) {
	let h = 0;
	for (const c of id) h = (h * 31 + c.charCodeAt(0)) >>> 0;
	return `hsl(${h % 360} 55% ${42 + (h >>> 9) % 3 * 9}%)`;
}

setInterval(() => groups.forEach(showMoves), 1000);
