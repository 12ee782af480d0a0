/** Changes the profiles that the service's clients share. Pure: from files' texts to new texts. */

import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { type Environment, homeDirectory } from "../../home-directory.ts";
import { renameOver } from "../../paths/rename-over.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import {
  hasIniValue,
  type Profile,
  type ProfileFile,
  readProfiles,
  removeIniSection,
  removeIniValue,
  setIniValue,
} from "./profile-text.ts";

/** The texts of the profile files; a missing file is empty. `secrets` overrides `settings`. */
export interface ProfileTexts {
  /** `cli.ini` */
  settings: string;
  /** `auth.ini` */
  secrets: string;
}

const fields = ["token", "url", "type", "project"] as const;

/** Saves all of a profile's fields in `auth.ini`, and removes unset fields from both files. */
export function saveProfile(texts: ProfileTexts, profile: Profile): ProfileTexts {
  const section = sectionOf(profile.name);
  let { settings, secrets } = texts;
  for (const field of fields) {
    const value = valueOf(profile, field);
    if (value === undefined) {
      settings = removeIniValue(settings, section, field);
      secrets = removeIniValue(secrets, section, field);
    } else {
      secrets = setIniValue(secrets, section, field, value);
    }
  }
  const saved = { settings, secrets };
  const read = readProfiles(filesOf(saved)).byName.get(profile.name);
  const strange = fields.find((field) => {
    const value = valueOf(profile, field);
    return value !== undefined && (read === undefined || valueOf(read, field) !== value);
  });
  if (strange === undefined) return saved;
  throw usageError(`the ${strange} contains characters that can't be stored in a profile file`);
}

function valueOf(profile: Profile, field: (typeof fields)[number]): string | undefined {
  return field === "token" ? profile.token?.text() : profile[field];
}

/** Changes one line, in the file that determines the active profile. */
export function switchProfile(texts: ProfileTexts, name: string): ProfileTexts {
  const isInSettings =
    !hasIniValue(texts.secrets, "DEFAULT", "profile") && hasIniValue(texts.settings, "DEFAULT", "profile");
  return isInSettings
    ? { ...texts, settings: setIniValue(texts.settings, "DEFAULT", "profile", name) }
    : { ...texts, secrets: setIniValue(texts.secrets, "DEFAULT", "profile", name) };
}

/** Removes a profile. If it was the active one, no profile is active afterwards. */
export function removeProfile(texts: ProfileTexts, name: string): ProfileTexts {
  const isActive = readProfiles(filesOf(texts)).active === name;
  const without = (text: string) => {
    const rest = removeIniSection(text, sectionOf(name));
    return isActive ? removeIniValue(rest, "DEFAULT", "profile") : rest;
  };
  return { settings: without(texts.settings), secrets: without(texts.secrets) };
}

export function checkProfileName(name: string): string {
  if (/^[\w.@:-]{1,64}$/.test(name)) return name;
  throw usageError(
    `not a name for a profile: ${JSON.stringify(name)}`,
    "A name has letters, digits and _ . @ : - in it.",
  );
}

function sectionOf(name: string): string {
  return `profile:${name}`;
}

function filesOf({ settings, secrets }: ProfileTexts): ProfileFile[] {
  return [
    { path: "cli.ini", text: settings },
    { path: "auth.ini", text: secrets },
  ];
}

/** The profile files that the service's clients share. */

/** Returns `$CONTREE_HOME`, else `$XDG_CONFIG_HOME/contree`, else `~/.config/contree`. */
export function profileDirectory(environment: Environment): string {
  if (environment.CONTREE_HOME) return environment.CONTREE_HOME;
  const configured = environment.XDG_CONFIG_HOME;
  // The XDG specification: a relative path must be ignored.
  if (configured && isAbsolute(configured)) return join(configured, "contree");
  return join(homeDirectory(environment), ".config", "contree");
}

/** Reads `cli.ini`, then `auth.ini`, which overrides it; only those that exist. */
export function readProfileFiles(environment: Environment): ProfileFile[] {
  const directory = profileDirectory(environment);
  return ["cli.ini", "auth.ini"].flatMap((name) => {
    const path = join(directory, name);
    try {
      // Checked first, because a caught error takes a tenth of a millisecond.
      if (statSync(path, { throwIfNoEntry: false }) === undefined) return [];
      return [{ path, text: readFileSync(path, "utf8") }];
    } catch (error) {
      const code = errorCode(error);
      if (code === "ENOENT" || code === "ENOTDIR") return [];
      throw new BoughError(`cannot read the profiles in ${path}: ${reasonOf(error)}`, {
        kind: "usage",
        cause: error,
      });
    }
  });
}

/** Writes a file that only its owner can read, completely or not at all. A link at the path stays a link. */
export function writePrivateFile(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const target = resolveLink(path);
    const temporary = join(dirname(target), `.${basename(target)}.${crypto.randomUUID().slice(0, 8)}`);
    try {
      const file = openSync(temporary, "wx", 0o600);
      try {
        writeSync(file, text);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameOver(temporary, target);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
  } catch (error) {
    throw new BoughError(`cannot write ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

function resolveLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
