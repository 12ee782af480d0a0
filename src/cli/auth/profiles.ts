import { basename, join } from "node:path";
import { BoughError, messageOf } from "../../errors.ts";
import { RefusedTokenError } from "../../service/http/errors.ts";
import {
  type ProfileTexts,
  profileDirectory,
  readProfileFiles,
  removeProfile,
  switchProfile,
  writePrivateFile,
} from "../../service/profiles/profile-editor.ts";
import { type Profile, type Profiles, readProfiles } from "../../service/profiles/profile-text.ts";
import { nearest } from "../../suggest.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";
import { probe } from "../service/connection.ts";

const fileNames = { settings: "cli.ini", secrets: "auth.ini" } as const;

/** The profile files that all clients of the service share, with their texts and the profiles in them. */
interface SavedProfiles {
  texts: ProfileTexts;
  profiles: Profiles;
  /** The name of the default profile, which may not exist. */
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

/** Writes the profile files whose texts have changed. */
export function storeProfiles({ environment }: Runtime, before: ProfileTexts, after: ProfileTexts): void {
  const directory = profileDirectory(environment);
  for (const part of ["settings", "secrets"] as const) {
    if (before[part] !== after[part]) writePrivateFile(join(directory, fileNames[part]), after[part]);
  }
}

function requireProfile({ byName }: Profiles, name: string): Profile {
  const profile = byName.get(name);
  if (profile !== undefined) return profile;
  const guess = nearest(name, byName.keys());
  throw new BoughError(`there is no profile ${JSON.stringify(name)}`, {
    hint: guess === undefined ? "`bough auth list` lists them." : `Did you mean ${guess}?`,
  });
}

export const list = command({
  name: "list",
  description: "List the saved profiles, and check that each service accepts its token.",
  run: listProfiles,
  examples: [
    ["auth list", "all of them; * is the active one"],
    ["auth list -f json", "as JSON, with the reason for each failure"],
  ],
  agentNote: "Tokens are never printed.",
});

/** The result of a check of a profile. `refused`: the service rejects the token. `failed`: the request failed. */
interface ProfileStatus {
  status: "ok" | "refused" | "failed";
  detail: string | null;
  expires: string | null;
}

async function listProfiles(invocation: Invocation): Promise<void> {
  const { runtime, log } = invocation;
  const { profiles, active } = loadProfiles(runtime);
  const saved = [...profiles.byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  if (saved.length === 0) log.info("no profile is saved yet: `bough auth --url https://...` saves one");
  const rows = await Promise.all(
    saved.map(async (profile) => ({ profile, ...(await check(profile, runtime)) })),
  );
  for (const { profile, detail } of rows) if (detail !== null) log.warn(`profile ${profile.name}: ${detail}`);
  printResult(invocation, {
    id: saved.map(({ name }) => name),
    json: rows.map(({ profile: { name, url, type, project }, ...status }) => ({
      profile: name,
      active: name === active,
      url: url ?? null,
      type: type ?? null,
      project: project ?? null,
      ...status,
    })),
    table: () => ({
      header: ["PROFILE", "ACTIVE", "URL", "TYPE", "PROJECT", "STATUS"],
      rows: rows.map(({ profile: { name, url, type, project }, status }) => [
        name,
        name === active ? "*" : "",
        url ?? null,
        type ?? null,
        project ?? null,
        status,
      ]),
    }),
  });
}

async function check(profile: Profile, runtime: Runtime): Promise<ProfileStatus> {
  try {
    const { expires } = await probe(profile, runtime);
    return { status: "ok", detail: null, expires: expires ?? null };
  } catch (error) {
    runtime.signal.throwIfAborted();
    const status = error instanceof RefusedTokenError ? "refused" : "failed";
    return { status, detail: messageOf(error), expires: null };
  }
}

export const remove = command({
  name: "remove",
  description: "Remove a profile with its token; other sections of the files stay.",
  args: {
    name: { type: "positional", completes: "profile", required: true, description: "A saved profile" },
  },
  run: removeNamed,
  examples: [
    ["auth remove work", "the profile `work`"],
    ["auth list", "the profiles that are left"],
  ],
  agentNote: "The token stays valid on the service: it is only removed from this machine.",
});

function removeNamed(invocation: Invocation): void {
  const { values, runtime, log } = invocation;
  const { texts, profiles, active } = loadProfiles(runtime);
  const { name } = requireProfile(profiles, values.positionals[0] ?? "");
  storeProfiles(runtime, texts, removeProfile(texts, name));
  if (name === active) {
    const next =
      profiles.byName.size > 1
        ? "`bough auth switch NAME` makes another one active"
        : "no other is left, so CONTREE_URL names the service, or else the embedded engine is used";
    log.warn(`the active profile was removed: ${next}`);
  }
  printResult(invocation, { id: name, json: { removed: name }, table: () => `${visible(name)}\n` });
}

export const switchCommand = command({
  name: "switch",
  description: "Make another profile the active one, for all of the service's clients.",
  args: {
    name: { type: "positional", completes: "profile", required: true, description: "A saved profile" },
  },
  run: switchTo,
  examples: [
    ["auth switch work", "use the profile `work` from now on"],
    ["-p work images", "use it for one command only; CONTREE_PROFILE does the same"],
  ],
  agentNote:
    "It changes a file that the service's other clients read. Prefer -p NAME, which changes nothing.",
});

function switchTo(invocation: Invocation): void {
  const { values, runtime } = invocation;
  const { texts, profiles } = loadProfiles(runtime);
  const { name, url } = requireProfile(profiles, values.positionals[0] ?? "");
  storeProfiles(runtime, texts, switchProfile(texts, name));
  printResult(invocation, {
    id: name,
    json: { profile: name, url: url ?? null },
    table: () => `${visible(name)}\n`,
  });
}
