import { resolve } from "node:path";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { utf8Text } from "../../open-for-reading.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../../service/http/json.ts";
import { reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

/** An image of a list. */
export interface ListedImage {
  /** `undefined` for a target that was not built. */
  image: string | undefined;
  /** The target of a bake file, if the list is a bake's. */
  target: string | undefined;
}

const maxBytes = 64 * 1024 * 1024;

/** Reads the list that an option names: a file, or `-` for standard input. */
export async function readImageList(
  given: string,
  { inputs, signal, workingDirectory }: Pick<Runtime, "inputs" | "signal" | "workingDirectory">,
  option = "each",
): Promise<ListedImage[]> {
  let text: string;
  try {
    const path = given === "-" ? given : resolve(workingDirectory, given);
    text = utf8Text(await inputs.read(path, { maxBytes, signal }));
  } catch (error) {
    signal.throwIfAborted();
    throw new BoughError(wording`${{ option, value: given }}: ${reasonOf(error)}`, {
      kind: "usage",
      hint: "It is a file with an image on each line, or with results of a bake; - is standard input.",
      cause: error,
    });
  }
  return parseImageList(text, given === "-" ? "standard input" : given);
}

/**
 * Parses a list: names of images, one per line; JSON lines, as of `bake --results`; or the output of `bake --print`. Throws a usage
 * BoughError for any other line.
 */
function parseImageList(text: string, file: string): ListedImage[] {
  const printed = printedTargets(text);
  if (printed !== undefined)
    return Object.entries(printed).map(([target, fields]) => {
      const tags = asRecord(fields)?.tags;
      return { image: Array.isArray(tags) ? asText(tags[0]) : undefined, target };
    });
  return text.split("\n").flatMap((whole, at) => {
    const line = whole.trim();
    if (line === "" || line.startsWith("#")) return [];
    if (!line.startsWith("{")) return [{ image: line, target: undefined }];
    const record = parseRecord(line);
    const [image, target] = [imageOfLine(record), asText(record?.target)];
    if (image !== undefined || target !== undefined) return [{ image, target }];
    throw new BoughError(`${file}:${at + 1}: the line has no image`, {
      kind: "usage",
      hint: 'A line is the name of an image, or an object as in {"image": "app:dev"}.',
    });
  });
}

/** Returns the targets in the output of `bake --print`; `undefined` for another text. */
function printedTargets(text: string): Record<string, unknown> | undefined {
  return text.trimStart().startsWith("{") ? asRecord(parseRecord(text)?.target) : undefined;
}

/** Returns the image of a JSON line. An image that is only in its registry is named by its tag. */
function imageOfLine(record: JsonRecord | undefined): string | undefined {
  const image = asText(record?.image);
  if (image !== undefined || !["built", "skipped"].includes(asText(record?.status) ?? "")) return image;
  const tags = record?.tags;
  return Array.isArray(tags) ? asText(tags[0]) : undefined;
}
