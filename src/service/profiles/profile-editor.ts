/** Changes the profiles that the service's clients share. Pure: from files' texts to new texts. */
import { BoughError } from "../../errors.ts";
import { hasIniValue, removeIniSection, removeIniValue, setIniValue } from "./ini-text.ts";
import { type Profile, type ProfileFile, readProfiles } from "./profile-text.ts";

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
    const value = profile[field];
    if (value === undefined) {
      settings = removeIniValue(settings, section, field);
      secrets = removeIniValue(secrets, section, field);
    } else {
      secrets = setIniValue(secrets, section, field, value);
    }
  }
  const saved = { settings, secrets };
  const read = readProfiles(filesOf(saved)).byName.get(profile.name);
  const strange = fields.find((field) => profile[field] !== undefined && read?.[field] !== profile[field]);
  if (strange === undefined) return saved;
  throw new BoughError(`the ${strange} contains characters that can't be stored in a profile file`, {
    kind: "usage",
  });
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
  throw new BoughError(`not a name for a profile: ${JSON.stringify(name)}`, {
    kind: "usage",
    hint: "A name has letters, digits and _ . @ : - in it.",
  });
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
