/** Renders a comparison as text for `bough layers`. */
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { renderTable, type TableStyle } from "../../terminal/table.ts";
import { visible } from "../../visible.ts";
import { listWords } from "../command-line/option-values.ts";
import type { DuplicateFinding } from "./findings.ts";

export interface LayerComparison {
  /** The number of images. */
  images: number;
  /** The number of layers that were read. */
  layers: number;
  /** The size of their files in bytes. */
  size: number;
  /** The size of redundant copies in several layers, on this machine's disk and, before compression, in a registry. */
  diskBytes: number;
  registryBytes: number;
  findings: readonly DuplicateFinding[];
}

/** `limit`: the maximum number of findings to show. */
export function renderComparison(
  { images, layers, size, diskBytes, registryBytes, findings }: LayerComparison,
  limit: number,
  style: TableStyle,
): string {
  const set = `${formatCount(images, "image")}, ${formatCount(layers, "layer")} with ${formatBytes(size)} of files`;
  if (findings.length === 0) return `${set}: no file is in two of the layers.\n`;
  const shown = findings.slice(0, limit);
  const rows = shown.map((finding, index) => [
    String(index + 1),
    formatBytes(finding.diskBytes),
    formatBytes(finding.registryBytes),
    String(finding.layers),
    String(finding.files),
    joinFirst(finding.instructions.map(shorten), "|"),
  ]);
  const table = renderTable(
    { header: ["", "DISK", "REGISTRY", "LAYERS", "FILES", "INSTRUCTION"], rows },
    style,
  );
  const advice = shown.map((finding, index) => {
    const number = `${index + 1}.`;
    const [cause, remedy] = adviceFor(finding).map(visible);
    return `${number} ${cause}\n${" ".repeat(number.length)} ${remedy}\n`;
  });
  const more = findings.length - shown.length;
  const rest = more > 0 ? `\n${more} more: -n ${findings.length} shows all.\n` : "";
  const amounts = `${formatBytes(diskBytes)} of the disk, ${formatBytes(registryBytes)} in a registry before compression`;
  const sum = `${set}.\nCopies of the same files: ${amounts}.`;
  return `${sum}\n\n${table}\n${advice.join("")}${rest}`;
}

/** Returns why the files are in several layers, and what to change so that the images share them. */
export function adviceFor(finding: DuplicateFinding): [cause: string, remedy: string] {
  const { kind, images, instructions, largest } = finding;
  const what = instructions.map((line) => `\`${shorten(line)}\``);
  const [own = ""] = what;
  const count = formatCount(images.length, "image");
  const file = largest[0] === undefined ? "" : ` (such as ${largest[0].path})`;
  const amount = `${amountOf(finding)}${file}`;
  switch (kind) {
    case "moved":
      return [
        `${own} is in ${count} after differing steps: ${amount}.`,
        `Put it before ${differingSteps(finding)}, if it needs nothing of that.`,
      ];
    case "changed":
      if (/^(COPY|ADD) /.test(instructions[0] ?? ""))
        return [
          `${own} copies also what differs in ${count}: ${amount}.`,
          "Copy what is the same in an instruction of its own before it.",
        ];
      return [
        `${own} is in ${count}, and itself the first step that differs, in build arguments or since it was not cached: ${amount}.`,
        "Build with the same cache, or put what it makes into a base that all are built FROM.",
      ];
    case "bases":
      return [
        `${joinFirst(what)}: ${count} are built FROM different bases: ${amount}.`,
        "With one base for all they can share it.",
      ];
    case "rewritten":
      return [
        `${joinFirst(what)} write the same files in one image, perhaps to change their owner or mode: ${amount}.`,
        "Use COPY --chown and --chmod, or one instruction.",
      ];
    case "different":
      return [
        `${joinFirst(what)} make the same files in ${count}: ${amount}.`,
        `Put one instruction for them, the same in all, before ${differingSteps(finding)}.`,
      ];
  }
}

/** Formats the redundant copies as `11 x 23 MB`, or as their sum if sets of layers have different sizes. */
function amountOf({ layers, bytes, diskBytes }: DuplicateFinding): string {
  return diskBytes === bytes * (layers - 1)
    ? `${layers - 1} x ${formatBytes(bytes)}`
    : formatBytes(diskBytes);
}

function differingSteps({ before }: DuplicateFinding): string {
  return before.length === 0
    ? "the end"
    : joinFirst(
        before.map((line) => `\`${shorten(line)}\``),
        "or",
      );
}

const maxListed = 3;

function joinFirst(items: readonly string[], word = "and"): string {
  if (items.length > maxListed)
    return `${items.slice(0, maxListed - 1).join(", ")} ${word} ${items.length - maxListed + 1} others`;
  return listWords(items, word);
}

const maxCharacters = 72;

/** Shortens an instruction, which may be a script, to one line. */
function shorten(instruction: string): string {
  const line = instruction.replace(/\s+/g, " ");
  return line.length > maxCharacters ? `${line.slice(0, maxCharacters - 1)}…` : line || "(unknown)";
}
