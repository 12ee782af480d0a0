/** Renders an image as `docker buildx imagetools inspect` does without `--format`. */
import { asText } from "../../service/http/json.ts";
import type { IndexEntry, ReadImage } from "../indexes/platform-index.ts";

export function renderImageListing(
  name: string,
  { manifest, isIndex, entries }: Pick<ReadImage, "manifest" | "isIndex" | "entries">,
): string {
  const head = aligned([
    ["Name:", name],
    ["MediaType:", manifest.mediaType],
    ["Digest:", manifest.digest],
  ]);
  if (!isIndex) return head;
  let text =
    head +
    aligned([
      ["", ""],
      ["Manifests:", ""],
    ]);
  let rows: [string, string][] = [];
  for (const [at, { entry }] of entries.entries()) {
    if (at > 0) rows.push(["", ""]);
    rows.push(...entryRows(name, entry));
    const annotations = Object.entries(entry.annotations ?? {});
    if (entry.platform === undefined || annotations.length === 0) continue;
    const sorted = annotations.toSorted(([one], [other]) => (one < other ? -1 : 1));
    // As in buildx, annotations end a block of aligned columns.
    text += aligned([...rows, ["  Annotations:", ""]]);
    text += aligned(sorted.map(([key, value]) => [`    ${key}:`, value]));
    rows = [];
  }
  return text + aligned(rows);
}

function entryRows(name: string, entry: IndexEntry & { urls?: unknown }): [string, string][] {
  const { digest, mediaType, platform, urls } = entry;
  const named = name.includes("@") ? name.replace(/@.*$/, `@${digest}`) : `${name}@${digest}`;
  const rows: [string, string][] = [
    ["  Name:", named],
    ["  MediaType:", mediaType],
  ];
  if (platform === undefined) return rows;
  const { os, architecture, variant, "os.version": version, "os.features": features } = platform;
  rows.push(["  Platform:", [os || "unknown", architecture, ...(variant ? [variant] : [])].join("/")]);
  if (version) rows.push(["  OSVersion:", version]);
  for (const [label, list] of [
    ["  OSFeatures:", features],
    ["  URLs:", urls],
  ] as const) {
    const texts = Array.isArray(list) ? list.flatMap((each) => asText(each) ?? []) : [];
    if (texts.length > 0) rows.push([label, texts.join(", ")]);
  }
  return rows;
}

/** Aligns the second column. */
function aligned(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(0, ...rows.map(([first]) => first.length)) + 1;
  return rows.map(([first, second]) => `${first.padEnd(width)}${second}\n`).join("");
}
