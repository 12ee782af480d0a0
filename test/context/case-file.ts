import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A part of a golden file, from a line `--- title` to the next one. */
export interface Section {
  title: string;
  body: string;
}

interface CaseFile {
  name: string;
  path: string;
  sections: readonly Section[];
}

/** Returns the golden files of one area in the order of their names. */
export function readCases(area: string): CaseFile[] {
  const directory = join(import.meta.dir, "../cases", area);
  return readdirSync(directory)
    .sort()
    .map((file) => {
      const path = join(directory, file);
      return { name: file.replace(/\.txt$/, ""), path, sections: parseSections(readFileSync(path, "utf8")) };
    });
}

/** Splits a golden file. Text before the first title, a comment on the case, is a section without a title. */
export function parseSections(text: string): Section[] {
  const [comment = "", ...rest] = text.split(/^--- /m);
  return [
    { title: "", body: comment },
    ...rest.map((part) => {
      const end = part.indexOf("\n");
      return { title: part.slice(0, end), body: part.slice(end + 1) };
    }),
  ];
}

export function formatSections(sections: readonly Section[]): string {
  return sections.map(({ title, body }) => (title === "" ? body : `--- ${title}\n${body}`)).join("");
}

/** Returns a path for a golden file: as JSON if it has white space or control characters. */
export function writePath(path: string): string {
  return /^[^\s"\p{Cc}]+$/u.test(path) ? path : JSON.stringify(path);
}

export function readPath(text: string): string {
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}
