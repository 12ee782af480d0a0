/** The text of the profile files: INI with one `[profile:<name>]` section a profile. Pure. */
import { parse } from "ini";
import { asRecord, asText } from "../http/json.ts";

export interface ProfileFile {
  path: string;
  text: string;
}

export interface Profile {
  name: string;
  token: string | undefined;
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
      token: value("token"),
      url: value("url"),
      type: value("type")?.toLowerCase(),
      project: value("project"),
    });
  }
  return { active: defaults.get("profile"), byName };
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
