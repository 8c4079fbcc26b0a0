// The game in the browser: the same moves, the same random words and so the same spawns as the
// Python engine (lab2048.game). A board is an array of ranks, row by row.

export const DIRECTIONS = ["up", "right", "down", "left"];
export const ARROWS = ["↑", "→", "↓", "←"];
const MAX_RANK = 17;
const DIGITS = "0123456789abcdefgh";

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;

function mix(z) {
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

const word = (key, t) => mix((key + (BigInt(t) + 1n) * GOLDEN) & MASK);
const again = (w) => mix((w + GOLDEN) & MASK);

// A number below n, exactly uniform (Lemire 2019), and the word that gave it.
function bounded(w, n) {
  const count = BigInt(n);
  for (;;) {
    const product = (w >> 32n) * count;
    if ((product & 0xffffffffn) >= (1n << 32n) % count) return [Number(product >> 32n), w];
    w = again(w);
  }
}

// p4 as a binary fraction of 32 + 64 bits.
function fourThreshold(p4) {
  let numerator = p4;
  let shift = 0n;
  while (!Number.isInteger(numerator)) {
    numerator *= 2;
    shift += 1n;
  }
  const scaled = (BigInt(numerator) << 96n) >> shift;
  return [scaled >> 64n, scaled & MASK];
}

function isFour(w, [high, low]) {
  const half = w & 0xffffffffn;
  return half < high || (half === high && again(w) < low);
}

// -- boards ----------------------------------------------------------------------------------

export class Rules {
  constructor(rows, cols, p4 = 0.1) {
    Object.assign(this, { rows, cols, p4 });
  }
  static parse(size, p4 = 0.1) {
    const found = /^\s*([2-6])\s*[x×]\s*([2-6])\s*$/i.exec(size ?? "");
    const rows = Number(found?.[1]);
    const cols = Number(found?.[2]);
    if (!found || rows * cols > 16)
      throw new Error(`a board's size is such as 4x4 or 3x5, not “${size}”`);
    const chance = p4 === "" ? NaN : Number(p4);
    if (!(chance >= 0 && chance <= 1))
      throw new Error("p4, the chance of a 4, is a number from 0 to 1");
    return new Rules(rows, cols, chance);
  }
  // As parameters of an address; the default p4 is left out.
  get query() {
    return { rules: this.name, p4: this.p4 === 0.1 ? null : this.p4 };
  }
  get name() {
    return `${this.rows}x${this.cols}`;
  }
  get cells() {
    return this.rows * this.cols;
  }
}

// The size of a board as the page shows it.
export const sizeText = (name) => name.replace("x", "×");

export const hex = (ranks) => ranks.map((rank) => DIGITS[rank]).join("");
export const fromHex = (text) =>
  [...text].map((digit) => {
    const rank = DIGITS.indexOf(digit);
    if (rank < 0) throw new Error(`${digit} is no rank`);
    return rank;
  });
export const tile = (rank) => (rank ? 2 ** rank : 0);

export function boardText(ranks, cols) {
  const rows = [];
  for (let i = 0; i < ranks.length; i += cols) {
    rows.push(
      ranks
        .slice(i, i + cols)
        .map((rank) => (rank ? tile(rank) : "."))
        .join(" "),
    );
  }
  return rows.join(" / ");
}

// Parse a board given as text: tiles in rows, a JSON list of rows, or ranks as digits.
export function parseBoard(text, rules = null) {
  text = text.trim();
  let rows;
  if (text.startsWith("[")) rows = JSON.parse(text).map((row) => row.map(String));
  else if (/[\s/;,]/.test(text)) {
    rows = text
      .split(/[/;\n]+/)
      .map((row) =>
        row
          .trim()
          .split(/[\s,]+/)
          .filter(Boolean),
      )
      .filter((row) => row.length);
  } else {
    const ranks = fromHex(text.toLowerCase());
    const side = Math.sqrt(ranks.length);
    const shape =
      rules && rules.cells === ranks.length
        ? rules
        : Number.isInteger(side)
          ? new Rules(side, side)
          : null;
    if (!shape) throw new Error(`${ranks.length} ranks are no square board; choose its size first`);
    return { ranks, rows: shape.rows, cols: shape.cols };
  }
  const cols = rows[0]?.length ?? 0;
  if (rows.some((row) => row.length !== cols))
    throw new Error("the rows of a board have the same number of tiles");
  Rules.parse(`${rows.length}x${cols}`);
  const ranks = rows.flat().map((cell) => {
    if (cell === "." || cell === "0") return 0;
    const rank = Math.log2(Number(cell));
    if (!Number.isInteger(rank) || rank < 1 || rank > MAX_RANK)
      throw new Error(`“${cell}” is no tile; tiles are 2, 4, 8, … and . for an empty cell`);
    return rank;
  });
  return { ranks, rows: rows.length, cols };
}

function lines(rows, cols, direction) {
  const found = [];
  if (direction === 0 || direction === 2) {
    for (let c = 0; c < cols; c++) found.push(Array.from({ length: rows }, (_, r) => r * cols + c));
  } else {
    for (let r = 0; r < rows; r++) found.push(Array.from({ length: cols }, (_, c) => r * cols + c));
  }
  return direction === 1 || direction === 2 ? found.map((line) => line.reverse()) : found;
}

// What a move does: whether it is legal, its reward, the afterstate, and where every tile goes.
export function slide(ranks, rows, cols, direction) {
  const after = new Array(ranks.length).fill(0);
  const paths = [];
  let reward = 0;
  for (const line of lines(rows, cols, direction)) {
    let place = 0;
    let open = false;
    for (const cell of line) {
      const rank = ranks[cell];
      if (!rank) continue;
      if (open && after[line[place - 1]] === rank) {
        const to = line[place - 1];
        after[to] = rank + 1;
        reward += tile(rank + 1);
        paths.push({ from: cell, to, merges: true });
        open = false;
      } else {
        after[line[place]] = rank;
        paths.push({ from: cell, to: line[place], merges: false });
        place += 1;
        open = true;
      }
    }
  }
  const legal = after.some((rank, cell) => rank !== ranks[cell]);
  return legal ? { legal, reward, after, paths } : { legal, reward: 0, after: ranks, paths: [] };
}

export const legalMoves = (ranks, rows, cols) =>
  [0, 1, 2, 3].filter((direction) => slide(ranks, rows, cols, direction).legal);

// -- a game ----------------------------------------------------------------------------------

export const newSeed = () => BigInt(crypto.getRandomValues(new Uint32Array(1))[0]);

export function parseSeed(text) {
  if (!/^[0-9]{1,20}$/.test(text ?? "") || BigInt(text) > MASK)
    throw new Error("a seed is a whole number below 2^64");
  return BigInt(text);
}

export class Game {
  constructor(rules, seed = newSeed(), { start = null, index = 0 } = {}) {
    Object.assign(this, { rules, seed, start, index, score: 0, moves: [], spawns: [], past: [] });
    this.key = word(mix(seed), index);
    this.threshold = fourThreshold(rules.p4);
    this.board = start ? [...start] : new Array(rules.cells).fill(0);
    if (!start) {
      this.#spawn();
      this.#spawn();
    }
  }

  #spawn() {
    const empty = this.board.flatMap((rank, cell) => (rank ? [] : [cell]));
    const [which, w] = bounded(word(this.key, this.spawns.length), empty.length);
    const spawn = { cell: empty[which], rank: isFour(w, this.threshold) ? 2 : 1 };
    this.board = this.board.with(spawn.cell, spawn.rank);
    this.spawns.push(spawn);
    return spawn;
  }

  get over() {
    return legalMoves(this.board, this.rules.rows, this.rules.cols).length === 0;
  }

  // Make a move; returns the slide and the spawn, or null if the move is not legal.
  play(direction) {
    const made = slide(this.board, this.rules.rows, this.rules.cols, direction);
    if (!made.legal) return null;
    this.past.push([this.board, this.score]);
    this.moves.push(direction);
    this.board = made.after;
    this.score += made.reward;
    return { ...made, spawn: this.#spawn() };
  }

  undo() {
    if (!this.past.length) return false;
    [this.board, this.score] = this.past.pop();
    this.moves.pop();
    this.spawns.pop();
    return true;
  }

  record(player = "you") {
    return makeRecord({
      ...this,
      player,
      moves: this.moves.join(""),
      spawns: spawnText(this.spawns),
      start: this.start && hex(this.start),
    });
  }
}

// A game as in a file; moves, spawns and start are strings, and `board` is the last board.
export function makeRecord({ rules, player, seed, index = 0, score, board, moves, spawns, start }) {
  const { rows, cols, p4 } = rules;
  return {
    format: 1,
    rules: { rows, cols, p4 },
    player,
    seed,
    index,
    score,
    max_tile: tile(Math.max(...board)),
    moves,
    spawns,
    ...(start ? { start } : {}),
  };
}

const spawnText = (spawns) => spawns.map(({ cell, rank }) => cell.toString(16) + rank).join("");

// The JSON of a record; a seed may have more digits than a JavaScript number.
export function recordJson({ seed, ...rest }) {
  return `{"seed":${seed ?? "null"},${JSON.stringify(rest).slice(1)}`;
}

// Parse a line of a file of games; the seed stays exact.
export function parseRecord(line) {
  const found = JSON.parse(line.replace(/"seed"\s*:\s*([0-9]+)/, '"seed": "$1"'));
  if (typeof found?.moves !== "string" || typeof found?.spawns !== "string" || !found.rules)
    throw new Error("this is no game of lab2048");
  return { ...found, seed: found.seed == null ? null : BigInt(found.seed) };
}

// Return every position of a record; throw an error where it breaks the rules.
export function replay(record) {
  const { rows, cols } = record.rules;
  let board = record.start ? fromHex(record.start) : new Array(rows * cols).fill(0);
  let score = 0;
  let next = 0;
  const spawn = () => {
    const [cell, rank] = [parseInt(record.spawns[next], 16), Number(record.spawns[next + 1])];
    if (board[cell] !== 0 || !(rank === 1 || rank === 2))
      throw new Error("a spawn of this game is not possible");
    next += 2;
    board = board.with(cell, rank);
    return { cell, rank };
  };
  if (!record.start) {
    spawn();
    spawn();
  }
  const turns = [];
  for (const digit of record.moves) {
    const made = slide(board, rows, cols, Number(digit));
    if (!made.legal) throw new Error("a move of this game is not legal");
    const before = board;
    board = made.after;
    score += made.reward;
    turns.push({
      board: before,
      score: score - made.reward,
      move: Number(digit),
      ...made,
      spawn: spawn(),
    });
  }
  return { turns, board, score };
}

// -- moves in an address: three per character --------------------------------------------------

const CODE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

export function packMoves(moves) {
  let text = String(moves.length % 3);
  for (let i = 0; i < moves.length; i += 3) {
    text += CODE[moves[i] * 16 + (moves[i + 1] ?? 0) * 4 + (moves[i + 2] ?? 0)];
  }
  return text;
}

export function unpackMoves(text) {
  if (!text) return [];
  if (!/^[012][\w-]*$/.test(text)) throw new Error("the moves in this address are damaged");
  const moves = [...text.slice(1)].flatMap((letter) => {
    const code = CODE.indexOf(letter);
    return [code >> 4, (code >> 2) & 3, code & 3];
  });
  const rest = Number(text[0]);
  return rest ? moves.slice(0, moves.length - 3 + rest) : moves;
}
