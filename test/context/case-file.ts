import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A part of a golden file, between `--- title` and the next such line. */
export interface Section {
  title: string;
  body: string;
}

export interface CaseFile {
  name: string;
  path: string;
  sections: readonly Section[];
}

/** The golden files of one area, in the order of their names. */
export function readCases(area: string): CaseFile[] {
  const directory = join(import.meta.dir, "../cases", area);
  return readdirSync(directory)
    .sort()
    .map((file) => {
      const path = join(directory, file);
      return { name: file.replace(/\.txt$/, ""), path, sections: parseSections(readFileSync(path, "utf8")) };
    });
}

/** What stands before the first title belongs to a section without one: a comment on the case. */
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

/** A path as it stands in a golden file: as JSON where it has white space or what no editor shows. */
export function writePath(path: string): string {
  return /^[^\s"\p{Cc}]+$/u.test(path) ? path : JSON.stringify(path);
}

export function readPath(text: string): string {
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}
