import { basename, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { writePrivateFile } from "../../service/profiles/private-file.ts";
import type { ProfileTexts } from "../../service/profiles/profile-editor.ts";
import { profileDirectory, readProfileFiles } from "../../service/profiles/profile-files.ts";
import { type Profile, type Profiles, readProfiles } from "../../service/profiles/profile-text.ts";
import { nearest } from "../../suggest.ts";
import type { Runtime } from "../process/runtime.ts";

const fileNames = { settings: "cli.ini", secrets: "auth.ini" } as const;

/** The profiles that all clients of the service share, as they are on disk. */
interface SavedProfiles {
  texts: ProfileTexts;
  profiles: Profiles;
  /** The name of the profile that is used by default. It may not exist. */
  active: string;
}

export function loadProfiles({ environment }: Runtime): SavedProfiles {
  const files = readProfileFiles(environment);
  const textOf = (name: string) => files.find(({ path }) => basename(path) === name)?.text ?? "";
  const profiles = readProfiles(files);
  return {
    texts: { settings: textOf(fileNames.settings), secrets: textOf(fileNames.secrets) },
    profiles,
    active: profiles.active ?? "default",
  };
}

/** Writes the files that have changed. */
export function storeProfiles({ environment }: Runtime, before: ProfileTexts, after: ProfileTexts): void {
  const directory = profileDirectory(environment);
  for (const part of ["settings", "secrets"] as const) {
    if (before[part] !== after[part]) writePrivateFile(join(directory, fileNames[part]), after[part]);
  }
}

export function requireProfile({ byName }: Profiles, name: string): Profile {
  const profile = byName.get(name);
  if (profile !== undefined) return profile;
  const guess = nearest(name, byName.keys());
  throw new BoughError(`there is no profile ${JSON.stringify(name)}`, {
    hint: guess === undefined ? "`bough auth list` lists them." : `Did you mean ${guess}?`,
  });
}
