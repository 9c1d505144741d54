// The report page: everything it shows stands in the JSON beside it, so it needs no network.
'use strict';

// --- data -----------------------------------------------------------------------------------------------------------

const report = JSON.parse(document.getElementById('report').textContent);

// Typed arrays travel as base64 of their little-endian bytes.
function typed(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Kind(bytes.buffer, 0, bytes.byteLength / Kind.BYTES_PER_ELEMENT);
}

const ALLOC = 0, FREE = 1, RETAG = 2;

// Live bytes by component after each event, and who made each block. Row 0 is the moment before the first event.
class Series {
  constructor(timeline) {
    this.names = timeline.names;
    this.marks = timeline.marks;
    this.eventBlock = typed(timeline.event_block, Uint32Array);
    this.eventKind = typed(timeline.event_kind, Uint8Array);
    this.eventComponent = typed(timeline.event_component, Uint8Array);
    this.blockUnits = typed(timeline.block_units, Uint32Array);
    this.blockOp = typed(timeline.block_op, Uint32Array);
    this.blockLayer = typed(timeline.block_layer, Int16Array);
    this.blockLabel = typed(timeline.block_label, Uint16Array);
    this.opName = typed(timeline.op_name, Uint16Array);
    this.opModule = typed(timeline.op_module, Uint16Array);
    this.opPhase = typed(timeline.op_phase, Uint8Array);
    this.unit = timeline.unit_bytes;
    this.length = this.eventBlock.length + 1;
    this.#sum();
    this.#raisePyramid();
  }

  #sum() {
    const present = new Set(this.eventComponent);
    this.components = report.component_order.filter((c) => present.has(c));
    const place = new Map(this.components.map((c, i) => [c, i]));
    this.live = this.components.map(() => new Float64Array(this.length));
    this.total = new Float64Array(this.length);
    const now = this.components.map(() => 0);
    const purpose = new Uint8Array(this.blockUnits.length);
    let total = 0;
    for (let i = 0; i + 1 < this.length; ++i) {
      const block = this.eventBlock[i];
      const bytes = this.blockUnits[block] * this.unit;
      const component = place.get(this.eventComponent[i]);
      if (this.eventKind[i] === ALLOC) {
        purpose[block] = component;
        now[component] += bytes;
        total += bytes;
      } else if (this.eventKind[i] === FREE) {
        now[purpose[block]] -= bytes;
        total -= bytes;
      } else {
        now[purpose[block]] -= bytes;
        purpose[block] = component;
        now[component] += bytes;
      }
      for (let c = 0; c < now.length; ++c) this.live[c][i + 1] = now[c];
      this.total[i + 1] = total;
    }
  }

  // level[k][j]: the highest of the rows j·2^k … (j+1)·2^k - 1, so that a column of the chart costs a handful of steps
  // however many events it stands for.
  #raisePyramid() {
    this.levels = [];
    let below = null;
    for (let width = this.length; width > 1; width = this.levels.at(-1).length) {
      const level = new Uint32Array(Math.ceil(width / 2));
      for (let j = 0; j < level.length; ++j) {
        const left = below ? below[2 * j] : 2 * j;
        const right = 2 * j + 1 < width ? (below ? below[2 * j + 1] : 2 * j + 1) : left;
        level[j] = this.total[right] > this.total[left] ? right : left;
      }
      this.levels.push(level);
      below = level;
    }
  }

  // The row with the most live bytes in [from, to).
  highest(from, to) {
    let best = from;
    const look = (row) => { if (this.total[row] > this.total[best]) best = row; };
    let level = -1;
    while (from < to) {
      const at = level < 0 ? null : this.levels[level];
      if (from & 1) { look(at ? at[from] : from); ++from; }
      if (to & 1) { --to; look(at ? at[to] : to); }
      from >>= 1;
      to >>= 1;
      ++level;
    }
    return best;
  }

  // What the event that led to this row did.
  describe(row) {
    if (row === 0) return null;
    const block = this.eventBlock[row - 1];
    const op = this.blockOp[block];
    const known = op < this.opName.length;
    const label = this.names[this.blockLabel[block]];
    const module = known ? this.names[this.opModule[op]] : '';
    return {
      kind: this.eventKind[row - 1],
      bytes: this.blockUnits[block] * this.unit,
      layer: this.blockLayer[block],
      name: [module, label || (known ? this.names[this.opName[op]] : '')].filter(Boolean).join(' '),
      phase: known ? this.opPhase[op] : null,
    };
  }
}

// --- text -----------------------------------------------------------------------------------------------------------

let language = report.language;
const say = (key) => report.texts[language][key] ?? key;

// The largest unit of which there is enough, as the program's texts have it; the page's unit sets the family.
const SCALES = {
  GiB: [['GiB', 2 ** 30, 0.1], ['MiB', 2 ** 20, 1], ['KiB', 2 ** 10, 1]],
  GB: [['GB', 1e9, 0.1], ['MB', 1e6, 1], ['kB', 1e3, 1]],
  MiB: [['MiB', 2 ** 20, 0]],
  bytes: [],
};
function bytes(n) {
  for (const [unit, size, least] of SCALES[report.unit]) {
    if (Math.abs(n) >= size * least) return `${(n / size).toFixed(2)} ${unit}`;
  }
  return `${n.toLocaleString('en-US')} B`;
}

// Eighteen components, and colours that stay apart for those who see fewer.
const COLORS = ['#4477aa', '#66ccee', '#ee6677', '#8c6bb1', '#bbbbbb', '#228833', '#ccbb44', '#aa3377', '#dd8452', '#937860',
  '#5f9ea0', '#c49c94', '#9edae5', '#b5bd61', '#f7b6d2', '#dbdb8d', '#c7c7c7', '#555555'];
const color = (component) => COLORS[component % COLORS.length];
const componentName = (component) => report.texts[language]['component_' + component];

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'style') Object.assign(made.style, value);
    else if (key.includes('-') || key === 'role') made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

// --- the chart ------------------------------------------------------------------------------------------------------

const MARGIN = { left: 74, right: 8, top: 18, bottom: 22 };
const NARROWEST = 8; // events across the whole chart

class Chart {
  constructor(series) {
    this.series = series;
    this.reset(false);
    this.canvas = element('canvas', { tabIndex: 0, role: 'img', id: 'timeline' });
    this.tip = element('div', { className: 'tip', hidden: true, role: 'status', id: 'tip' });
    this.range = element('output', { id: 'range' });
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  element() {
    const button = (text, key, act) => element('button', { type: 'button', textContent: text, title: say(key), onclick: act, 'data-act': key });
    const middle = () => (this.from + this.to) / 2;
    this.canvas.setAttribute('aria-label', say('page_chart_label'));
    return element('div', { className: 'chart' },
      element('div', { className: 'tools' },
        button('+', 'page_zoom_in', () => this.zoom(0.5, middle())),
        button('−', 'page_zoom_out', () => this.zoom(2, middle())),
        button('⟲', 'page_zoom_reset', () => this.reset()),
        button('⇡', 'page_to_peak', () => this.showPeak()),
        element('span', { className: 'faint', textContent: say('page_chart_help') }),
        this.range),
      this.canvas, this.tip);
  }

  reset(draw = true) {
    this.from = 0;
    this.to = this.series.length;
    if (draw) this.draw();
  }

  showPeak() {
    const peak = this.series.highest(0, this.series.length);
    const width = Math.max(NARROWEST, Math.round(this.series.length / 50));
    this.view(peak - width / 2, peak + width / 2);
    this.point(peak);
  }

  view(from, to) {
    const width = Math.min(Math.max(to - from, NARROWEST), this.series.length);
    const start = Math.min(Math.max(from, 0), this.series.length - width);
    this.from = start;
    this.to = start + width;
    this.draw();
  }

  zoom(factor, around) {
    this.view(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    const box = this.canvas.getBoundingClientRect();
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(box.height * scale);
    this.canvas.getContext('2d').setTransform(scale, 0, 0, scale, 0, 0);
    this.draw();
  }

  get inner() { return { width: this.width - MARGIN.left - MARGIN.right, height: this.height - MARGIN.top - MARGIN.bottom }; }
  xOf(row) { return MARGIN.left + (row - this.from) / (this.to - this.from) * this.inner.width; }
  rowOf(x) { return this.from + (x - MARGIN.left) / this.inner.width * (this.to - this.from); }

  // Each column shows the highest moment of the events that it stands for: no peak is ever lost between pixels.
  columns() {
    const count = Math.max(1, Math.floor(this.inner.width));
    const rows = new Uint32Array(count);
    for (let x = 0; x < count; ++x) {
      const first = Math.floor(this.from + (this.to - this.from) * x / count);
      const last = Math.max(first + 1, Math.floor(this.from + (this.to - this.from) * (x + 1) / count));
      rows[x] = this.series.highest(Math.min(first, this.series.length - 1), Math.min(last, this.series.length));
    }
    return rows;
  }

  draw() {
    if (!this.width || this.inner.width <= 0) return;
    const began = performance.now();
    const paint = this.canvas.getContext('2d');
    const style = getComputedStyle(document.body);
    const ink = style.color;
    const faint = style.getPropertyValue('--faint');
    const rows = this.columns();
    let most = report.usable_bytes && this.from === 0 && this.to === this.series.length ? report.usable_bytes : 0;
    for (const row of rows) most = Math.max(most, this.series.total[row]);
    this.most = most * 1.04 || 1;
    const y = (n) => MARGIN.top + this.inner.height * (1 - n / this.most);
    paint.clearRect(0, 0, this.width, this.height);
    this.#areas(paint, rows, y);
    this.#axis(paint, y, faint);
    this.#marks(paint, ink, faint);
    if (report.usable_bytes && report.usable_bytes <= this.most) this.#limit(paint, y(report.usable_bytes), style.getPropertyValue('--bad'));
    this.range.textContent = `${say('page_events')} ${Math.floor(this.from)} – ${Math.ceil(this.to) - 1}`;
    this.drawMilliseconds = performance.now() - began;
  }

  #areas(paint, rows, y) {
    const below = new Float64Array(rows.length);
    this.series.components.forEach((component, c) => {
      const live = this.series.live[c];
      paint.beginPath();
      paint.moveTo(MARGIN.left, y(below[0]));
      for (let x = 0; x < rows.length; ++x) {
        const top = y(below[x] + live[rows[x]]);
        paint.lineTo(MARGIN.left + x, top);
        paint.lineTo(MARGIN.left + x + 1, top);
      }
      for (let x = rows.length - 1; x >= 0; --x) {
        paint.lineTo(MARGIN.left + x + 1, y(below[x]));
        paint.lineTo(MARGIN.left + x, y(below[x]));
        below[x] += live[rows[x]];
      }
      paint.closePath();
      paint.fillStyle = color(component);
      paint.fill();
    });
  }

  #axis(paint, y, faint) {
    paint.font = '12px system-ui, sans-serif';
    paint.textAlign = 'right';
    paint.textBaseline = 'middle';
    paint.fillStyle = faint;
    paint.strokeStyle = faint + '40';
    const step = niceStep(this.most / 5);
    for (let n = 0; n <= this.most; n += step) {
      paint.beginPath();
      paint.moveTo(MARGIN.left, Math.round(y(n)) + 0.5);
      paint.lineTo(this.width - MARGIN.right, Math.round(y(n)) + 0.5);
      paint.stroke();
      paint.fillText(bytes(n), MARGIN.left - 6, y(n));
    }
  }

  #marks(paint, ink, faint) {
    paint.textBaseline = 'bottom';
    paint.textAlign = 'center';
    let end = -1e9;
    for (const mark of this.series.marks) {
      const x = this.xOf(mark.event);
      if (x < MARGIN.left || x > this.width - MARGIN.right + 1) continue;
      paint.strokeStyle = faint;
      paint.setLineDash([3, 3]);
      paint.beginPath();
      paint.moveTo(Math.round(x) + 0.5, MARGIN.top);
      paint.lineTo(Math.round(x) + 0.5, this.height - MARGIN.bottom);
      paint.stroke();
      paint.setLineDash([]);
      const text = report.texts[language]['phase_' + mark.name] ?? mark.name;
      const half = paint.measureText(text).width / 2;
      const at = Math.min(Math.max(x, MARGIN.left + half), this.width - MARGIN.right - half);
      if (at - half < end + 8) continue;
      end = at + half;
      paint.fillStyle = ink;
      paint.fillText(text, at, this.height - 4);
    }
  }

  #limit(paint, at, tone) {
    paint.strokeStyle = paint.fillStyle = tone;
    paint.beginPath();
    paint.moveTo(MARGIN.left, Math.round(at) + 0.5);
    paint.lineTo(this.width - MARGIN.right, Math.round(at) + 0.5);
    paint.stroke();
    paint.textAlign = 'left';
    paint.textBaseline = 'bottom';
    paint.fillText(`${say('page_usable')} ${bytes(report.usable_bytes)}`, MARGIN.left + 4, at - 2);
  }

  // Shows what is alive at a row.
  point(row) {
    const at = Math.min(Math.max(Math.round(row), 0), this.series.length - 1);
    this.pointed = at;
    const what = this.series.describe(at);
    const rows = this.series.components
      .map((component, c) => [component, this.series.live[c][at]])
      .filter(([, n]) => n !== 0)
      .reverse();
    const list = element('div', { className: 'bars' }, ...rows.flatMap(([component, n]) => [
      element('span', {}, element('span', { className: 'swatch', style: { background: color(component) } }), componentName(component)),
      element('span', { className: 'number', textContent: bytes(n) })]));
    const head = element('div', {}, element('b', { textContent: bytes(this.series.total[at]) }), ` · ${say('page_event')} ${at}`);
    const lines = [head];
    if (what) {
      const verb = say(['page_allocates', 'page_frees', 'page_keeps'][what.kind]);
      const layer = what.layer < 0 ? '' : ` · ${say('page_layer')} ${what.layer}`;
      lines.push(element('div', { className: 'faint', textContent: `${verb} ${bytes(what.bytes)}: ${what.name}${layer}` }));
    }
    this.tip.replaceChildren(...lines, list);
    this.tip.hidden = false;
    const x = this.xOf(at);
    const space = this.canvas.offsetLeft + this.width;
    this.tip.style.left = x + 20 + this.tip.offsetWidth > space ? `${Math.max(0, x - this.tip.offsetWidth - 4)}px` : `${x + 20}px`;
    this.tip.style.top = `${this.canvas.offsetTop + MARGIN.top}px`;
  }

  listen() {
    const canvas = this.canvas;
    const fingers = new Map();
    const local = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 120) / 400), this.rowOf(local(event)));
      this.point(this.rowOf(local(event)));
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      fingers.set(event.pointerId, local(event));
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => this.#moved(event, fingers, local(event)));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
    canvas.addEventListener('pointerleave', () => { if (document.activeElement !== canvas) this.tip.hidden = true; });
    canvas.addEventListener('dblclick', () => this.reset());
    canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  // One finger or the mouse's button moves the view, two fingers stretch it.
  #moved(event, fingers, x) {
    if (fingers.has(event.pointerId)) {
      const before = fingers.get(event.pointerId);
      const others = [...fingers].filter(([id]) => id !== event.pointerId);
      if (others.length === 0) {
        const shift = this.rowOf(before) - this.rowOf(x);
        this.view(this.from + shift, this.to + shift);
      } else {
        const still = others[0][1];
        const factor = Math.max(10, Math.abs(before - still)) / Math.max(10, Math.abs(x - still));
        this.zoom(factor, this.rowOf(still));
      }
      fingers.set(event.pointerId, x);
    }
    this.point(this.rowOf(x));
  }

  #key(event) {
    const width = this.to - this.from;
    const step = event.shiftKey ? Math.max(1, Math.round(width / 20)) : 1;
    const at = this.pointed ?? Math.round(this.from);
    const acts = {
      ArrowLeft: () => this.#walk(at - step),
      ArrowRight: () => this.#walk(at + step),
      '+': () => this.zoom(0.5, at),
      '=': () => this.zoom(0.5, at),
      '-': () => this.zoom(2, at),
      Home: () => this.reset(),
      Escape: () => { this.tip.hidden = true; },
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  #walk(row) {
    if (row < this.from || row >= this.to) this.view(row - (this.to - this.from) / 2, row + (this.to - this.from) / 2);
    this.point(row);
  }
}

// A round number of bytes not below `least`: 1, 2 or 5 times a power of ten of the page's unit.
function niceStep(least) {
  const unit = { GiB: 2 ** 30, MiB: 2 ** 20, GB: 1e9, bytes: 1 }[report.unit];
  const power = 10 ** Math.floor(Math.log10(least / unit));
  for (const factor of [1, 2, 5, 10]) {
    if (factor * power * unit >= least) return factor * power * unit;
  }
  return least;
}

// --- the page -------------------------------------------------------------------------------------------------------

// Name, bytes and a bar for each, of `whole` or of its own.
function bars(rows, all) {
  return element('div', { className: 'bars' }, ...rows.map((row) => ({ whole: all, ...row })).flatMap(({ whole, ...row }) => [
    element('span', {}, ...(row.color ? [element('span', { className: 'swatch', style: { background: row.color } })] : []), row.name),
    element('span', { className: 'number', textContent: `${bytes(row.bytes)}  ${(100 * row.bytes / whole).toFixed(1)}%` }),
    element('div', { className: 'track' }, element('div', { style: { width: `${100 * row.bytes / whole}%`, background: row.color ?? 'var(--mark)' } })),
    ...(row.rule ? [element('p', { className: 'rule', textContent: row.rule })] : [])]));
}

function table(rows) {
  return element('table', {}, element('tbody', {}, ...rows.map((cells) =>
    element('tr', {}, ...cells.map((cell, i) => element('td', { className: i === 0 ? 'number' : '', textContent: cell }))))));
}

function section(key, ...content) {
  return element('section', { id: key }, element('h2', { textContent: say(key) }), ...content);
}

function list(key, items) {
  return items.length ? [section(key, element('ul', {}, ...items.map((item) => element('li', { textContent: item }))))] : [];
}

function headOf(shown) {
  const toggle = element('button', { type: 'button', id: 'language', textContent: language === 'en' ? '中文' : 'English', onclick: () => build(language === 'en' ? 'zh' : 'en') });
  const parts = [
    element('header', {}, element('h1', { textContent: shown.title }), toggle),
    element('p', { className: 'faint', textContent: shown.model }),
    element('p', { className: `verdict ${report.tone}`, id: 'verdict', textContent: shown.verdict }),
    element('p', { textContent: shown.peak })];
  if (report.usable_bytes) {
    const part = Math.min(100, 100 * report.whole_bytes / report.usable_bytes);
    parts.push(element('div', { className: `gauge ${report.tone}` }, element('div', { style: { width: `${part}%` } })));
  }
  if (shown.full) parts.push(element('p', { textContent: shown.full }), element('pre', { textContent: report.out_of_memory }));
  return parts;
}

// Each card against what it offers; without a limit against the fullest.
function cards() {
  if (!report.ranks.length) return [];
  const most = Math.max(...report.ranks.map((rank) => rank.usable_bytes ?? rank.bytes));
  return [section('heading_ranks', bars(report.ranks.map((rank) => ({
    name: rank.name, bytes: rank.bytes, whole: rank.usable_bytes ?? most, color: rank.fits ? 'var(--good)' : 'var(--bad)',
    rule: [rank.usable_bytes ? `${say('page_usable')} ${bytes(rank.usable_bytes)}` : '', rank.modules].filter(Boolean).join(' · '),
  })), most))];
}

const series = new Series(report.timeline);
const chart = new Chart(series);

function build(chosen) {
  language = chosen;
  document.documentElement.lang = language;
  const shown = report.shown[language];
  document.title = shown.title;
  const components = report.components.map((c, i) => ({ ...c, name: shown.components[i].name, rule: shown.components[i].rule, color: color(c.component) }));
  document.getElementById('page').replaceChildren(
    ...headOf(shown),
    ...cards(),
    section('heading_timeline', chart.element()),
    section('heading_components', bars(components.filter((c) => c.bytes !== 0), report.whole_bytes)),
    section('heading_phases', bars(report.phases.map((p, i) => ({ bytes: p.bytes, name: shown.phases[i] })), report.peak_bytes)),
    section('heading_parts', table(report.parts.map((p, i) => [bytes(p.bytes), shown.parts[i].component, shown.parts[i].name]))),
    ...(shown.advice.length ? [section('heading_advice', element('table', {}, element('tbody', {}, ...shown.advice.map((line) =>
      element('tr', {}, element('td', {}, element('code', { className: line.fits ? 'good' : '', textContent: line.args })),
        element('td', {}, element('div', { textContent: line.effect }), element('div', { className: 'faint', textContent: line.text })))))))] : []),
    section('heading_setup', element('p', { className: 'faint', textContent: report.setup })),
    ...list('heading_warnings', shown.warnings),
    ...list('heading_assumptions', shown.assumptions));
  chart.resize();
}

build(language);
window.ullage = { series, chart };
