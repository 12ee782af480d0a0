/** Chooses the service of a command: by flags, else a profile, else variables, else the embedded engine. Pure. */

import { usageError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { type Message, wording } from "../../messages/wording.ts";
import type { Secret } from "../../secret.ts";
import { formatAddress, parseBaseUrl } from "../http/address.ts";
import {
  optionalSecret,
  type Profile,
  type ProfileFile,
  type Profiles,
  readProfiles,
} from "./profile-text.ts";

export interface ServiceFlags {
  url?: string | undefined;
  token?: Secret | undefined;
  project?: string | undefined;
  profile?: string | undefined;
  /** The option that names the profile; default: `--profile`. */
  profileOption?: string | undefined;
  /** Forces the embedded engine. */
  local?: boolean | undefined;
}

export type ServiceChoice =
  | { kind: "embedded" }
  | {
      kind: "remote";
      /** Checked, without trailing slashes. */
      url: string;
      token: Secret | undefined;
      project: string | undefined;
      /** The source of the choice, in words for people. */
      source: string;
    };

interface ServiceInputs {
  flags: ServiceFlags;
  environment: Environment;
  /** `cli.ini` and `auth.ini`, in this order. */
  files: readonly ProfileFile[];
}

/** Throws a BoughError of kind `usage` if the configuration names no usable service. */
export function chooseService({ flags, environment, files }: ServiceInputs): ServiceChoice {
  if (flags.local === true) return { kind: "embedded" };
  const profiles = readProfiles(files);
  const named = flags.profile ?? (environment.CONTREE_PROFILE || undefined);
  if (flags.url !== undefined && flags.profile === undefined) {
    const active = profiles.byName.get(named ?? profiles.active ?? defaultProfile);
    const candidates = [active === undefined ? undefined : ofProfile(active), ofVariables(environment)];
    // Credentials for one host are not sent to another.
    const credentials = candidates.find((candidate) => belongsTo(candidate, flags.url));
    return complete(override({ source: "--url", ...credentialsOf(credentials) }, flags));
  }
  const configured = findProfile(profiles, named, flags) ?? ofVariables(environment);
  if (configured !== undefined) return complete(override(configured, flags));
  const lone = (["token", "project"] as const).find((name) => flags[name] !== undefined);
  if (lone === undefined) return { kind: "embedded" };
  throw usageError(
    `--${lone} is given without the address of a service`,
    wording`Give the address with ${{ option: "url" }}.`,
  );
}

/** A service as one source describes it. */
interface Candidate {
  source: string;
  url?: string | undefined;
  token?: Secret | undefined;
  project?: string | undefined;
  /** True if a project must be named: an IAM token does not imply one. */
  needsProject?: boolean;
}

const defaultProfile = "default";

/** Finds the profile. One that was asked for must exist; `default` need not. */
function findProfile(
  profiles: Profiles,
  named: string | undefined,
  flags: ServiceFlags,
): Candidate | undefined {
  const name = named ?? profiles.active;
  const profile = profiles.byName.get(name ?? defaultProfile);
  if (profile !== undefined) return ofProfile(profile);
  if (name === undefined) return undefined;
  const origin =
    flags.profile !== undefined
      ? (flags.profileOption ?? "--profile")
      : named !== undefined
        ? "CONTREE_PROFILE"
        : "[DEFAULT] profile";
  const known = [...profiles.byName.keys()].sort();
  throw usageError(
    `there is no profile ${JSON.stringify(name)} (${origin})`,
    // docker run -p
    /^[\d.:]*:\d+(\/\w+)?$/.test(name)
      ? wording`No ports are published: with ${{ option: "network" }} host a command listens on this machine's network.`
      : known.length === 0
        ? wording`No profile is saved yet: give ${{ option: "url" }} and ${{ option: "token" }}.`
        : `Known profiles: ${known.join(", ")}.`,
  );
}

function ofProfile({ name, url, token, project, type }: Profile): Candidate {
  return { source: `profile ${name}`, url, token, project, needsProject: type === "iam" };
}

/** Reads variables. Other tools use `NEBIUS_*`, too: these only complete a description. */
function ofVariables(environment: Environment): Candidate | undefined {
  const { CONTREE_URL: url, CONTREE_TOKEN: token } = environment;
  if (!url && !token) return undefined;
  return {
    source: url ? "CONTREE_URL" : "CONTREE_TOKEN",
    url: url || undefined,
    token: optionalSecret(token || environment.NEBIUS_API_KEY),
    project: environment.CONTREE_PROJECT || environment.NEBIUS_AI_PROJECT || undefined,
  };
}

function belongsTo(candidate: Candidate | undefined, url: string | undefined): boolean {
  if (candidate === undefined || url === undefined) return false;
  // A token in a variable without an address is meant for the one on the command line.
  if (candidate.url === undefined) return candidate.source === "CONTREE_TOKEN";
  return (
    URL.canParse(candidate.url) && URL.canParse(url) && new URL(candidate.url).origin === new URL(url).origin
  );
}

function credentialsOf({ token, project, needsProject }: Candidate = { source: "" }): Partial<Candidate> {
  return { token, project, ...(needsProject === undefined ? {} : { needsProject }) };
}

function override(candidate: Candidate, flags: ServiceFlags): Candidate {
  return {
    source: candidate.source,
    url: flags.url ?? candidate.url,
    token: flags.token ?? candidate.token,
    project: flags.project ?? candidate.project,
    // A token on the command line may be of any kind.
    needsProject: candidate.needsProject === true && flags.token === undefined,
  };
}

function complete({ source, url, token, project, needsProject }: Candidate): ServiceChoice {
  if (url === undefined)
    throw usageError(`${source}: the service's address is missing`, missingUrlHint(source));
  if (needsProject === true && project === undefined) {
    throw usageError(
      `${source}: a token of type iam needs a project`,
      wording`Add project = ... to the profile, or give ${{ option: "project" }}.`,
    );
  }
  return { kind: "remote", url: formatAddress(parseBaseUrl(url)), token, project, source };
}

function missingUrlHint(source: string): Message {
  return source === "CONTREE_TOKEN"
    ? wording`Set CONTREE_URL, or give ${{ option: "url" }}.`
    : wording`Add url = https://... to the profile, or give ${{ option: "url" }}: bough has no default address.`;
}
