import { BoughError, messageOf, usageError } from "../../errors.ts";
import { Secret } from "../../secret.ts";
import type { Account } from "../../service/capabilities.ts";
import { formatAddress, parseBaseUrl } from "../../service/http/address.ts";
import { checkProfileName, saveProfile, switchProfile } from "../../service/profiles/profile-editor.ts";
import type { Profile } from "../../service/profiles/profile-text.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { oneOf } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { probe } from "../service/connection.ts";
import { loadProfiles, storeProfiles } from "./profiles.ts";
import { askSecret, canAsk, readSecretLine } from "./secret.ts";

export const save = command({
  name: "auth",
  description:
    "Save a profile: a service's address and token. The service's other clients use the same profiles.",
  args: {
    type: {
      type: "string",
      completes: ["iam", "jwt"],
      valueHint: "iam|jwt",
      description: "Kind of the token (default: iam with a project, else jwt)",
    },
    "no-verify": {
      type: "boolean",
      description: "Save without checking that the service accepts the token",
    },
  },
  run: saveCommand,
  examples: [
    ["auth --url https://service.example", "asks for the token, and saves the profile `default`"],
    [
      "auth -p work --url https://service.example --project p1 --token - < token",
      "token from standard input",
    ],
    ["auth -p ci --no-verify", "address and token from CONTREE_URL and CONTREE_TOKEN"],
  ],
  agentNote:
    "This command is mutating: it saves a profile; `bough auth list` only shows them. The token is that of --token, else CONTREE_TOKEN or NEBIUS_API_KEY, else it is asked for; --token - reads standard input.",
});

async function saveCommand(invocation: Invocation): Promise<void> {
  const { values, globals, runtime, log } = invocation;
  const { environment } = runtime;
  const { texts, profiles, active } = loadProfiles(runtime);
  const name = checkProfileName(globals.profile ?? (environment.CONTREE_PROFILE || active));
  const earlier = profiles.byName.get(name);
  const url = readUrl(globals.url ?? earlier?.url ?? environment.CONTREE_URL, name);
  const project =
    globals.project ??
    (environment.CONTREE_PROJECT || environment.NEBIUS_AI_PROJECT || undefined) ??
    (earlier?.url === url ? earlier.project : undefined);
  const givenType = values.text("type");
  const type = givenType === undefined ? undefined : oneOf(givenType, ["iam", "jwt"], "--type");
  const token = await readToken(invocation);
  const profile: Profile = { name, token, url, type: type ?? kindOf(token, project), project };
  if (profile.type === "iam" && project === undefined) {
    throw usageError("a token of type iam needs a project", "Give --project ID.");
  }
  const account = values.flag("no-verify") ? undefined : await verify(profile, invocation);
  // The first saved profile becomes the active one. `bough auth switch` activates later ones.
  const isActive = active === name || profiles.byName.get(active) === undefined;
  const saved = saveProfile(texts, profile);
  const isNamed = profiles.active === name;
  storeProfiles(runtime, texts, isActive && !isNamed ? switchProfile(saved, name) : saved);
  log.info(
    isActive
      ? `saved the profile ${name}: commands use ${url} from now on, also without variables; \`bough auth remove ${name}\` removes it`
      : `saved the profile ${name}; ${active} stays active: \`bough auth switch ${name}\` switches to this one`,
  );
  printResult(invocation, {
    id: name,
    json: {
      profile: name,
      url,
      type: profile.type,
      project: project ?? null,
      active: isActive,
      expires: account?.expires ?? null,
    },
    table: () => ({
      header: ["PROFILE", "ACTIVE", "URL", "TYPE", "PROJECT"],
      rows: [[name, isActive ? "*" : "", url, profile.type ?? null, project ?? null]],
    }),
  });
}

function readUrl(given: string | undefined, name: string): string {
  if (given !== undefined && given !== "") return formatAddress(parseBaseUrl(given));
  throw usageError(
    `profile ${name}: the service's address is missing`,
    "Give it with --url https://..., or in CONTREE_URL.",
  );
}

async function readToken({ globals, runtime, log }: Invocation): Promise<Secret> {
  if (globals.token?.text() === "-") return await readSecretLine(runtime, "--token -");
  if (globals.token !== undefined) return globals.token;
  for (const variable of ["CONTREE_TOKEN", "NEBIUS_API_KEY"]) {
    const value = runtime.environment[variable];
    if (!value) continue;
    log.info(`using the token in ${variable}`);
    return Secret.of(value);
  }
  if (!canAsk(runtime)) {
    throw usageError(
      "no token given, and there is no terminal to ask for it",
      "Pipe it in with --token -, or set CONTREE_TOKEN.",
    );
  }
  const typed = await askSecret(runtime, "Token");
  if (typed === undefined) throw usageError("no token was given");
  return typed;
}

/** Returns the token's type. A token without a project must be a JWT, which contains its project. */
function kindOf(token: Secret, project: string | undefined): "iam" | "jwt" {
  const text = token.text();
  const isJwt = /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text) && text.startsWith("ey");
  return isJwt || project === undefined ? "jwt" : "iam";
}

async function verify(profile: Profile, { runtime, log }: Invocation): Promise<Account> {
  try {
    const account = await probe(profile, runtime);
    if (account.expires !== undefined) log.info(`the token is valid until ${account.expires}`);
    return account;
  } catch (error) {
    runtime.signal.throwIfAborted();
    throw new BoughError(`profile ${profile.name} is not saved: ${messageOf(error)}`, {
      hint: "Check the address, token and project; --no-verify saves them unchecked.",
      cause: error,
    });
  }
}
