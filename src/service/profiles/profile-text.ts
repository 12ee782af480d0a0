/** The text of the profile files: INI with one `[profile:<name>]` section a profile. Pure. */
import { parse } from "ini";
import { Secret } from "../../secret.ts";
import { asRecord, asText } from "../http/json.ts";

export interface ProfileFile {
  path: string;
  text: string;
}

export interface Profile {
  name: string;
  token: Secret | undefined;
  url: string | undefined;
  /** `iam` or `jwt`. */
  type: string | undefined;
  project: string | undefined;
}

export interface Profiles {
  /** `[DEFAULT] profile`. */
  active: string | undefined;
  byName: Map<string, Profile>;
}

const sectionPrefix = "profile:";

/** Reads the files; later ones override earlier ones. Values of `[DEFAULT]` apply to every section, as the format defines. */
export function readProfiles(files: readonly ProfileFile[]): Profiles {
  const sections = new Map<string, Map<string, string>>();
  for (const { text } of files) {
    for (const [name, values] of parseSections(text)) {
      const section = sections.get(name) ?? new Map<string, string>();
      for (const [key, value] of values) section.set(key, value);
      sections.set(name, section);
    }
  }
  const defaults = sections.get("DEFAULT") ?? new Map<string, string>();
  const byName = new Map<string, Profile>();
  for (const [section, own] of sections) {
    if (!section.startsWith(sectionPrefix)) continue;
    const name = section.slice(sectionPrefix.length).trim();
    const value = (key: string) => own.get(key) ?? defaults.get(key);
    byName.set(name, {
      name,
      token: optionalSecret(value("token")),
      url: value("url"),
      type: value("type")?.toLowerCase(),
      project: value("project"),
    });
  }
  return { active: defaults.get("profile"), byName };
}

/** A secret that is given as text; `undefined` for none, or an empty one. */
export function optionalSecret(text: string | undefined): Secret | undefined {
  return text ? Secret.of(text) : undefined;
}

function parseSections(text: string): [string, [string, string][]][] {
  // ini makes nested objects of dots in a section's name, and takes a header with a comment after it as a key.
  const escaped = text
    .replace(/^\ufeff/, "")
    .replace(/^[ \t]*\[([^\]\r\n]*)\][^\r\n]*/gm, (_, name: string) => `[${name.replaceAll(".", "\\.")}]`);
  return Object.entries(parse(escaped)).flatMap(([name, section]): [string, [string, string][]][] => {
    const values = asRecord(section);
    if (values === undefined) return [];
    const pairs = Object.entries(values).flatMap(([key, value]): [string, string][] => {
      const known = asText(value);
      return known === undefined ? [] : [[key.toLowerCase(), known]];
    });
    return [[name, pairs]];
  });
}

/**
 * Changes INI files and keeps everything else: comments, order, spaces, other sections, line ends. Pure. Keys are
 * case-insensitive, section names are not. Of several lines for one key the last counts.
 */

/** Sets a key, by changing its value in its line or by adding a line. */
export function setIniValue(text: string, section: string, key: string, value: string): string {
  const lines = linesOf(text);
  const at = findKey(lines, section, key);
  if (at !== undefined) return lines.with(at, replaceValue(lines[at] ?? "", value)).join("");
  const end = lineEnd(text);
  const line = `${key} = ${value}${end}`;
  const place = endOfSection(lines, section);
  if (place !== undefined) return insert(lines, place, [line], end);
  const header = `[${section}]${end}`;
  // Defaults come first, by custom.
  const first = lines.findIndex((other) => headerOf(other) !== undefined);
  if (section === "DEFAULT" && first >= 0) return insert(lines, first, [header, line, end], end);
  const gap = text.trim() === "" || /\n\s*\n$/.test(text) ? [] : [end];
  return insert(lines, lines.length, [...gap, header, line], end);
}

export function hasIniValue(text: string, section: string, key: string): boolean {
  return findKey(linesOf(text), section, key) !== undefined;
}

export function removeIniValue(text: string, section: string, key: string): string {
  const lines = linesOf(text);
  const removed = sectionLines(lines, section).filter((at) => keyOf(lines[at] ?? "") === key.toLowerCase());
  return lines.filter((_, at) => !removed.includes(at)).join("");
}

/** Removes a section's keys and the comments among them. Lines after a blank line at its end belong to the next section. */
export function removeIniSection(text: string, section: string): string {
  const lines = linesOf(text);
  const removed = new Set<number>();
  for (const [start, header] of lines.entries()) {
    if (headerOf(header) !== section) continue;
    const next = lines.findIndex((line, at) => at > start && headerOf(line) !== undefined);
    const body = lines.slice(start + 1, next < 0 ? undefined : next);
    const lastKey = body.findLastIndex((line) => keyOf(line) !== undefined);
    let length = lastKey + 2;
    while (length <= body.length && isComment(body[length - 1] ?? "")) length++;
    // One of the blank lines around it goes, too.
    if ((body[length - 1] ?? "x").trim() === "" && length <= body.length) length++;
    for (let at = start; at < start + length; at++) removed.add(at);
  }
  return lines.filter((_, at) => !removed.has(at)).join("");
}

/** Splits the text into lines with their line ends. */
function linesOf(text: string): string[] {
  return text === "" ? [] : text.split(/(?<=\n)/);
}

function lineEnd(text: string): string {
  return /\r\n/.test(text) ? "\r\n" : "\n";
}

function headerOf(line: string): string | undefined {
  return /^[\ufeff \t]*\[([^\]\r\n]*)\]/.exec(line)?.[1]?.trim();
}

function isComment(line: string): boolean {
  return /^\s*[;#]/.test(line);
}

function keyOf(line: string): string | undefined {
  return isComment(line) ? undefined : /^\s*([^=[\]\s][^=]*?)\s*=/.exec(line)?.[1]?.toLowerCase();
}

/** Indexes of the lines in all sections of that name. */
function sectionLines(lines: readonly string[], section: string): number[] {
  let current: string | undefined;
  return lines.flatMap((line, at) => {
    current = headerOf(line) ?? current;
    return current === section && headerOf(line) === undefined ? [at] : [];
  });
}

function findKey(lines: readonly string[], section: string, key: string): number | undefined {
  return sectionLines(lines, section).findLast((at) => keyOf(lines[at] ?? "") === key.toLowerCase());
}

/** The index after the section's last key, or its header. */
function endOfSection(lines: readonly string[], section: string): number | undefined {
  const header = lines.findLastIndex((line) => headerOf(line) === section);
  if (header < 0) return undefined;
  const last = sectionLines(lines, section).findLast(
    (at) => at > header && keyOf(lines[at] ?? "") !== undefined,
  );
  return (last ?? header) + 1;
}

/** Replaces the value and keeps what is around it: spaces, and a comment at the end of the line. */
function replaceValue(line: string, value: string): string {
  const parts =
    /^([^=]*=[ \t]*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^;#\r\n]*?)([ \t]*(?:[;#][^\r\n]*)?\r?\n?)$/.exec(
      line,
    );
  return parts === null ? line : `${parts[1]}${value}${parts[3]}`;
}

function insert(lines: readonly string[], at: number, added: readonly string[], end: string): string {
  const before = lines.slice(0, at).join("");
  const complete = before === "" || before.endsWith("\n") ? before : `${before}${end}`;
  return [complete, ...added, ...lines.slice(at)].join("");
}
