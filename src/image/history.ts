/** One line of an image's history, with the names of the OCI image specification. */
export interface HistoryLine {
  /** ISO 8601. */
  created?: string;
  /** The instruction or command. */
  created_by?: string;
  author?: string;
  comment?: string;
  /** True if the line has no layer. */
  empty_layer?: boolean;
}

/** An image's author and the steps that made it. */
export interface ImageOrigin {
  author?: string;
  /** The first step first. Missing if it is unknown. */
  history?: readonly HistoryLine[];
  /** `linux/arm64`. Missing if it is that of the service. */
  platform?: string;
}

/** More than any real Dockerfile needs. The lines are stored with every image that is based on it. */
const maxLines = 10_000;
/** Maximum characters of a text. */
const maxLength = 64 * 1024;

/** Checks an origin from outside. A history with an invalid line is left out, unless `onMalformed` throws. */
export function parseImageOrigin(
  { author, history, platform }: { author?: unknown; history?: unknown; platform?: unknown },
  onMalformed: (problem: string) => void = () => undefined,
): ImageOrigin {
  const lines = history == null ? undefined : parseHistory(history, onMalformed);
  if (author != null && typeof author !== "string") onMalformed("author must be a string");
  const isPlatform =
    typeof platform === "string" && /^[a-z0-9]+\/[a-z0-9._-]+(\/[a-z0-9._-]+)?$/.test(platform);
  if (platform != null && !isPlatform) onMalformed("platform must be OS/ARCHITECTURE");
  return {
    ...(typeof author === "string" && author !== "" ? { author: author.slice(0, maxLength) } : {}),
    ...(lines === undefined ? {} : { history: lines }),
    ...(isPlatform ? { platform } : {}),
  };
}

export function parseHistory(
  value: unknown,
  onMalformed: (problem: string) => void,
): HistoryLine[] | undefined {
  const lines = Array.isArray(value) && value.length <= maxLines ? value.map(parseLine) : [];
  if (Array.isArray(value) && value.length <= maxLines && lines.every((line) => line !== undefined))
    return lines;
  onMalformed(`history must be a list of at most ${maxLines} OCI history entries`);
  return undefined;
}

function parseLine(value: unknown): HistoryLine | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { empty_layer: isEmpty, ...fields } = value as Record<string, unknown>;
  if (isEmpty != null && typeof isEmpty !== "boolean") return undefined;
  if (typeof fields.created === "string" && Number.isNaN(Date.parse(fields.created))) return undefined;
  // An image has a line for each of its steps, and is read often.
  const line: HistoryLine = {};
  for (const name of textFields) {
    const text = fields[name] ?? "";
    if (typeof text !== "string") return undefined;
    if (text !== "") line[name] = text.slice(0, maxLength);
  }
  if (isEmpty === true) line.empty_layer = true;
  return line;
}

const textFields = ["created", "created_by", "author", "comment"] as const;

/**
 * Fits a history to an image's layers, each with a time: the same number of lines has a layer, and every line has a time. The
 * lowest layers are taken to be those that were merged, or those without a known line.
 */
export function completeHistory(
  history: readonly HistoryLine[],
  layers: readonly LayerLine[],
): HistoryLine[] {
  const surplus = history.filter(hasLayer).length - layers.length;
  const unknown = layers.slice(0, Math.max(-surplus, 0));
  let merged = surplus;
  const lines = [
    ...unknown,
    ...history.map((line) => (hasLayer(line) && merged-- > 0 ? { ...line, empty_layer: true } : line)),
  ];
  return withTimes(lines, layers);
}

/** Drops the lines without a layer, and then the oldest ones, from a history that is too long to be stored. */
export function truncateHistory(history: readonly HistoryLine[]): readonly HistoryLine[] {
  return history.length <= maxLines ? history : history.filter(hasLayer).slice(-maxLines);
}

/** Gives the only layer to the last step with one, for steps whose changes are all in one layer. */
export function squashHistory(history: readonly HistoryLine[]): HistoryLine[] {
  const last = history.findLastIndex(hasLayer);
  return history.map((line, at) => (hasLayer(line) && at !== last ? { ...line, empty_layer: true } : line));
}

/** The known fields of a layer for which the history has no line. */
type LayerLine = Required<Pick<HistoryLine, "created" | "created_by">>;

export function layerLine(layer: { created_at: string; is_imported: boolean }): LayerLine {
  return { created: layer.created_at, created_by: layer.is_imported ? "imported" : "" };
}

/** Returns the line that made each layer, with the earlier lines whose files are in it as well. */
export function linesByLayer(
  history: readonly HistoryLine[],
  layers: readonly LayerLine[],
): { line: HistoryLine; others: HistoryLine[] }[] {
  const made = layers.map((): { line: HistoryLine; others: HistoryLine[] } => ({ line: {}, others: [] }));
  for (const { line, layer } of linesWithLayers(history, layers)) {
    const of = made[layer ?? -1];
    if (of === undefined) continue;
    if (hasLayer(line)) of.line = line;
    else of.others.push(line);
  }
  return made;
}

/** Returns all lines, each with the number of the layer, from 0, that has its files; `undefined` for a line without files. */
export function linesWithLayers(
  history: readonly HistoryLine[],
  layers: readonly LayerLine[],
): { line: HistoryLine; layer: number | undefined }[] {
  const complete = completeHistory(history, layers);
  const isMerged = (at: number) => {
    const before = history[at - (complete.length - history.length)];
    return before !== undefined && hasLayer(before);
  };
  let next = 0;
  return complete.map((line, at) => {
    if (hasLayer(line)) return { line, layer: next++ };
    const hasFiles = isMerged(at) || /^(COPY|ADD) /.test(line.created_by ?? "");
    return { line, layer: hasFiles && next < layers.length ? next : undefined };
  });
}

/** Returns a line's instruction without BuildKit's and Docker's additions. */
export function instructionOf({ created_by = "", comment = "" }: HistoryLine): string {
  const text = created_by
    .replace(/ # buildkit$/, "")
    .replace(/^\/bin\/sh -c #\(nop\)\s+/, "")
    .replace(/^(RUN )?(\|\d+ .*? )?\/bin\/sh -c /s, "RUN ");
  return text.trim() === "" ? comment : text.trim();
}

export function hasLayer({ empty_layer }: HistoryLine): boolean {
  return empty_layer !== true;
}

/** Fills in missing times as BuildKit does: from the previous line for a line without a layer; at the start, from the next. */
function withTimes(lines: readonly HistoryLine[], layers: readonly { created: string }[]): HistoryLine[] {
  let next = 0;
  const timed = lines.map((line) => {
    const layer = hasLayer(line) ? layers[next++] : undefined;
    return line.created === undefined && layer !== undefined ? { ...line, created: layer.created } : line;
  });
  const firstOwn = lines.findIndex(({ created }) => created === undefined);
  if (firstOwn < 0) return timed;
  const [given, own] = [timed.slice(0, firstOwn), timed.slice(firstOwn)];
  let time = (own.find(({ created }) => created !== undefined) ?? given.at(-1))?.created;
  const filled = own.map((line) => {
    time = line.created ?? time;
    return time === undefined ? line : { ...line, created: time };
  });
  return [...given, ...filled];
}
