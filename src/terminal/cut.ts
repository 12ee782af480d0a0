import type { CapturedOutput } from "../service/service.ts";
import { formatBytes } from "./quantity.ts";

/** Describes an output longer than what is kept of it: the end is missing, and with it, often, the error. */
export function describeCut(stream: string, { text }: Pick<CapturedOutput, "text">): string {
  const kept = formatBytes(Buffer.byteLength(text));
  return `${stream} is cut off after ${kept}: its end is missing, and an error there with it. A command can write it to a file instead`;
}
