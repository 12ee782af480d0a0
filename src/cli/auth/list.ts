import { messageOf } from "../../errors.ts";
import { RefusedTokenError } from "../../service/http/errors.ts";
import type { Profile } from "../../service/profiles/profile-text.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";
import { probe } from "../service/probe.ts";
import { loadProfiles } from "./profiles.ts";

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

/** `refused`: the service rejects the token. `failed`: the request failed. */
interface Status {
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

async function check(profile: Profile, runtime: Runtime): Promise<Status> {
  try {
    const { expires } = await probe(profile, runtime);
    return { status: "ok", detail: null, expires: expires ?? null };
  } catch (error) {
    runtime.signal.throwIfAborted();
    const status = error instanceof RefusedTokenError ? "refused" : "failed";
    return { status, detail: messageOf(error), expires: null };
  }
}
