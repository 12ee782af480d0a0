/** Renders an image as text for `bough inspect`. */
import {
  completeHistory,
  type HistoryLine,
  instructionOf,
  layerLine,
  linesByLayer,
} from "../../image/history.ts";
import type { ImageLayerChanges } from "../../service/wire/image.ts";
import type { Store } from "../../store/store.ts";
import { paintHeading } from "../../terminal/color.ts";
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { type Cell, formatTime, renderTable, type TableStyle } from "../../terminal/table.ts";
import { visible } from "../../visible.ts";
import type { ImageDescription } from "../references/image-argument.ts";
import type { Connection } from "../service/connection.ts";

interface Inspection extends ImageDescription {
  image: string;
  tags: readonly string[];
  createdAt: string | null;
  platform: string | null;
  layers: readonly InspectedLayer[];
}

export function renderInspection(inspection: Inspection, style: TableStyle): string {
  const { layers } = inspection;
  const properties = renderProperties(propertiesOf(inspection, style.now), style);
  if (layers.length === 0) return properties;
  const isMeasured = layers.some(({ changes }) => changes !== null);
  const table = isMeasured ? renderMeasured(layers, style) : renderRecorded(layers, style);
  return `${properties}\n${table}${isMeasured ? describeHidden(layers) : ""}`;
}

function propertiesOf(
  { image, tags, createdAt, platform, origin, config, layers }: Inspection,
  now: number | undefined,
): Property[] {
  const bytes = layers.reduce((sum, layer) => sum + sizeOf(layer), 0);
  const isMeasured = layers.some(({ changes }) => changes !== null);
  const words = (list: readonly string[] | undefined) => (list?.length ? JSON.stringify(list) : undefined);
  const properties: [name: string, values: (string | undefined | null)[]][] = [
    ["IMAGE", [image]],
    ["TAGS", [tags.join(" ")]],
    ["CREATED", [createdAt && now !== undefined ? formatTime(createdAt, now) : createdAt]],
    ["PLATFORM", [platform]],
    ["AUTHOR", [origin.author]],
    ["SIZE", [isMeasured ? `${formatBytes(bytes)} in ${formatCount(layers.length, "layer")}` : undefined]],
    ["USER", [config.User]],
    ["WORKDIR", [config.WorkingDir]],
    ["ENTRYPOINT", [words(config.Entrypoint)]],
    ["CMD", [words(config.Cmd)]],
    ["ENV", [...(config.Env ?? [])]],
    ["EXPOSE", [Object.keys(config.ExposedPorts ?? {}).join(" ")]],
    ["VOLUME", Object.keys(config.Volumes ?? {})],
    ["LABEL", Object.entries(config.Labels ?? {}).map(([name, value]) => `${name}=${value}`)],
    ["STOPSIGNAL", [config.StopSignal]],
    ["HEALTHCHECK", [config.Healthcheck === undefined ? undefined : JSON.stringify(config.Healthcheck)]],
    ["SHELL", [words(config.Shell)]],
    ["ONBUILD", [...(config.OnBuild ?? [])]],
  ];
  return properties.flatMap(([name, values]) =>
    values.flatMap((value, at) => (value ? { name: at === 0 ? name : "", value } : [])),
  );
}

interface Property {
  name: string;
  value: string;
}

/** Renders a line for each property. Long values are left to the terminal to wrap, so that they can be copied. */
function renderProperties(properties: readonly Property[], { hasColor }: TableStyle): string {
  const width = Math.max(...properties.map(({ name }) => name.length));
  return properties
    .map(({ name, value }) => {
      const title = name.padEnd(width);
      return `${hasColor === true ? paintHeading(title) : title}  ${visible(value)}\n`;
    })
    .join("");
}

/** The width of the bar of a layer's size, in columns. */
const barWidth = 10;
/** The maximum number of lines for the other instructions of a layer. */
const maxOthers = 4;
/** The minimum widths of the terminal, in columns, for counts of files and for their sizes. */
const minColumnsForCounts = 64;
const minColumnsForBytes = 120;

function renderMeasured(layers: readonly InspectedLayer[], style: TableStyle): string {
  const { columns = Number.POSITIVE_INFINITY } = style;
  const largest = Math.max(...layers.map(sizeOf));
  const kinds = columns < minColumnsForCounts ? [] : (["added", "changed", "deleted"] as const);
  const amountOf = ({ files, bytes }: { files: number; bytes: number }) =>
    files === 0 ? "-" : columns < minColumnsForBytes ? String(files) : `${files}, ${formatBytes(bytes)}`;
  const rows = layers.flatMap((layer, index): string[][] => {
    const { instruction, others, changes } = layer;
    const counts = kinds.map((kind) => (changes === null ? "-" : amountOf(changes[kind])));
    const bar = formatBar(sizeOf(layer), largest);
    const more = others.length - maxOthers;
    const shown = more > 1 ? [...others.slice(0, maxOthers), `(and ${more} more)`] : others;
    // As in the Dockerfile, the other changes of the layer precede its own instruction.
    const [first = "", ...rest] = [...shown, instruction || "-"];
    return [
      [String(index + 1), formatBytes(sizeOf(layer)), bar, ...counts, first],
      ...rest.map((line) => ["", "", "", ...kinds.map(() => ""), line]),
    ];
  });
  const header = ["LAYER", "SIZE", "", ...kinds.map((kind) => kind.toUpperCase()), "INSTRUCTION"];
  return renderTable({ header, rows }, style);
}

function renderRecorded(layers: readonly InspectedLayer[], style: TableStyle): string {
  const rows = layers.map(({ createdAt, instruction }, index): Cell[] => [
    String(index + 1),
    { time: createdAt },
    instruction,
  ]);
  return renderTable({ header: ["LAYER", "CREATED", "INSTRUCTION"], rows }, style);
}

/** Describes the space of files that later layers hide, for layers in which it exceeds 1% of the image. */
function describeHidden(layers: readonly InspectedLayer[]): string {
  const size = layers.reduce((sum, layer) => sum + sizeOf(layer), 0);
  const hidden = layers
    .map(({ changes }, index) => ({ layer: index + 1, bytes: changes?.hidden.bytes ?? 0 }))
    .filter(({ bytes }) => bytes > size / 100)
    .sort((one, other) => other.bytes - one.bytes);
  if (hidden.length === 0) return "";
  const which = hidden.map((each) => `${formatBytes(each.bytes)} in layer ${each.layer}`);
  return `\nWasted: ${which.join(", ")}. Later layers change or delete that.\n`;
}

const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

function formatBar(value: number, largest: number): string {
  if (value === 0) return "";
  const length = Math.max(1, Math.round((value / largest) * barWidth * 8));
  return "█".repeat(Math.floor(length / 8)) + eighths[length % 8];
}

/** A layer as `bough inspect` shows it. */
export interface InspectedLayer {
  /** The service's id of the layer; `undefined` if the service does not report layers. */
  id: string | undefined;
  instruction: string;
  /** Instructions of other changes in the layer: of files copied before, or of layers merged into it. */
  others: readonly string[];
  createdAt: string;
  /** `null` if unknown. */
  isBase: boolean | null;
  changes: Pick<ImageLayerChanges, "added" | "changed" | "deleted" | "hidden"> | null;
}

interface InspectedLayers {
  /** The lowest first. */
  layers: InspectedLayer[];
  history: readonly HistoryLine[];
}

/** Returns the layers that the service reports, else those that builds and sessions on this machine have recorded. */
export async function findLayers(
  image: string,
  history: readonly HistoryLine[],
  { service, store }: Pick<Connection, "service" | "store">,
): Promise<InspectedLayers> {
  if (!(await service.capabilities.extensions()).has("changes"))
    return { layers: recordedLayers(image, store), history };
  const found = await service.summarizeChanges(image);
  const unnamed = found.map(layerLine);
  const lines = linesByLayer(history, unnamed);
  const layers = found.map(({ id, created_at, is_imported, ...changes }, index): InspectedLayer => {
    const { line = {}, others = [] } = lines[index] ?? {};
    const createdAt = line.created ?? created_at;
    const instructions = { instruction: instructionOf(line), others: others.map(instructionOf) };
    return { id, ...instructions, createdAt, isBase: is_imported, changes };
  });
  return { layers, history: completeHistory(history, unnamed) };
}

/**
 * Returns the steps to the image in the first session whose history has it. Sessions that made the image come before those that only
 * use it.
 */
function recordedLayers(image: string, { sessions }: Pick<Store, "sessions">): InspectedLayer[] {
  let used: InspectedLayer[] = [];
  for (const { key } of sessions.list("")) {
    const entries = new Map(sessions.history(key)?.map((entry) => [entry.id, entry]));
    const found = [...entries.values()].filter((each) => each.image === image);
    const made = found.find(({ kind }) => kind !== "use");
    const layers: InspectedLayer[] = [];
    for (let entry = made ?? found[0]; entry !== undefined; entry = entries.get(entry.parent ?? -1)) {
      layers.unshift({
        id: undefined,
        instruction: entry.title,
        others: [],
        createdAt: new Date(entry.createdAt).toISOString(),
        isBase: ["run", "copy", "commit"].includes(entry.kind) ? false : null,
        changes: null,
      });
    }
    if (made !== undefined) return layers;
    if (used.length === 0) used = layers;
  }
  return used;
}

/** Returns the size of a layer's files in bytes. */
export function sizeOf({ changes }: Pick<InspectedLayer, "changes">): number {
  return changes === null ? 0 : changes.added.bytes + changes.changed.bytes;
}
