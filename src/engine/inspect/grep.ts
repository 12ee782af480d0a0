import { posix } from "node:path";
import type { Clock } from "../../clock.ts";
import type { Environment } from "../../home-directory.ts";
import { beforeDeadline, type Deadline, endHelper, startHelper } from "../../programs/helper.ts";
import { readLines } from "../../streams.ts";
import { RequestError } from "../http/responses.ts";
import { findProgram, helperEnvironment } from "../system/programs.ts";

interface GrepQuery {
  patterns: readonly string[];
  globs: readonly string[];
  case: "smart" | "sensitive" | "insensitive";
  /** The maximum number of matches in each file; `maxTotal` is for all files together. */
  maxCount: number | undefined;
  maxTotal: number;
  before: number;
  after: number;
}

/** A path to search, on this machine and in the image. */
interface GrepPlace {
  path: string;
  inside: string;
}

interface GrepMatch {
  path: string;
  line_number: number;
  absolute_offset: number;
  line_text: string;
  line_bytes: number;
  submatches: { text: string; start: number; end: number }[];
  type: "match" | "context";
}

const maxSeconds = 60;

/**
 * Searches an image's files with ripgrep, whose time is linear in the bytes that it reads, whatever the pattern. It follows no
 * links and reads only regular files.
 */
export async function grepFiles(
  places: readonly GrepPlace[],
  query: GrepQuery,
  { environment, clock, signal }: { environment: Environment; clock: Clock; signal: AbortSignal },
): Promise<{ matches: GrepMatch[]; truncated: boolean }> {
  const command = [
    findProgram("rg", environment),
    ...optionsOf(query),
    "--",
    ...places.map(({ path }) => path),
  ];
  const helper = startHelper(command, { environment: helperEnvironment(environment) });
  const deadline: Deadline = { clock, seconds: maxSeconds, signal, hint: "Search fewer files." };
  return beforeDeadline(helper, command, readMatches(helper, places, query.maxTotal), deadline);
}

function optionsOf(query: GrepQuery): string[] {
  const { patterns, globs, maxCount, before, after } = query;
  return [
    "--no-config",
    "--json",
    "--hidden",
    "--no-ignore",
    "--sort=path",
    { smart: "--smart-case", sensitive: "--case-sensitive", insensitive: "--ignore-case" }[query.case],
    ...(maxCount === undefined ? [] : [`--max-count=${maxCount}`]),
    ...(before === 0 ? [] : [`--before-context=${before}`]),
    ...(after === 0 ? [] : [`--after-context=${after}`]),
    ...globs.map((glob) => `--glob=${glob}`),
    ...patterns.map((pattern) => `--regexp=${pattern}`),
  ];
}

/** A line of ripgrep's JSON output; text that is not UTF-8 is base64. */
interface GrepRecord {
  type: string;
  data: {
    path: GrepText;
    lines: GrepText;
    line_number: number;
    absolute_offset: number;
    submatches: { match: GrepText; start: number; end: number }[];
  };
}

type GrepText = { text: string } | { bytes: string };

/**
 * Reads the first `max` matches, with the context lines of the last one, and then ends ripgrep: its output can be many times as long
 * as the files.
 */
async function readMatches(
  helper: ReturnType<typeof startHelper>,
  places: readonly GrepPlace[],
  max: number,
): Promise<{ matches: GrepMatch[]; truncated: boolean }> {
  const errorOutput = new Response(helper.stderr).text();
  await helper.stdin.end();
  const matches: GrepMatch[] = [];
  let count = 0;
  for await (const line of readLines(helper.stdout)) {
    const match = matchIn(line, places);
    if (match?.type === "match" && ++count > max) {
      endHelper(helper);
      return { matches, truncated: true };
    }
    if (match !== undefined) matches.push(match);
  }
  // Status 1 means no match, 2 an error, even if only one file of many failed.
  if ((await helper.exited) > 1 && matches.length === 0)
    throw new RequestError(400, reasonIn(await errorOutput));
  return { matches, truncated: false };
}

/** ripgrep reports an invalid pattern in several lines, of which the last says what is wrong with it. */
function reasonIn(errorOutput: string): string {
  const lines = errorOutput.trim().split("\n");
  const reason = lines.find((line) => line.startsWith("error: "))?.slice("error: ".length);
  return reason === undefined ? lines[0] || "the search failed" : `invalid pattern: ${reason}`;
}

function matchIn(line: string, places: readonly GrepPlace[]): GrepMatch | undefined {
  const { type, data } = JSON.parse(line) as GrepRecord;
  if (type !== "match" && type !== "context") return undefined;
  const bytes = bytesOf(data.lines);
  return {
    path: insidePath(bytesOf(data.path).toString(), places),
    line_number: data.line_number,
    absolute_offset: data.absolute_offset,
    line_text: bytes.toString().replace(/\r?\n$/, ""),
    line_bytes: bytes.length,
    submatches: data.submatches.map(({ match, start, end }) => ({
      text: bytesOf(match).toString(),
      start,
      end,
    })),
    type,
  };
}

function bytesOf(text: GrepText): Buffer {
  return "text" in text ? Buffer.from(text.text) : Buffer.from(text.bytes, "base64");
}

function insidePath(found: string, places: readonly GrepPlace[]): string {
  const place = places.find(({ path }) => found === path || found.startsWith(`${path}/`));
  return place === undefined ? found : posix.join(place.inside, found.slice(place.path.length));
}
