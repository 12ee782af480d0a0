import { parseGoBoolean } from "../../go/boolean.ts";
import type { Environment } from "../../home-directory.ts";
import { Secret } from "../../secret.ts";
import { asInteger, asRecord, asText } from "../../service/http/json.ts";
import { sha256Of } from "../../sha256.ts";

/** Where GitHub's cache service is, and what opens it. */
export interface GithubAccess {
  /** Ends with a slash. */
  url: string;
  token: Secret;
  /** The time, in milliseconds, that all requests together may wait for a service that is busy or failing. */
  maxWaitMilliseconds: number;
}

/** A service limits requests by the minute. */
export const defaultWaitMilliseconds = 120_000;

/** Fields of an option that stand in place of variables. */
export type AccessFields = Partial<Record<"url" | "url_v2" | "token" | "version", string>>;

/** `missing`: the variables that would be needed. `outdated`: the address of a service with the first version of the protocol only. */
type FoundAccess =
  | { kind: "found"; url: string; token: Secret }
  | { kind: "missing"; missing: readonly string[] }
  | { kind: "outdated"; url: string };

/** The service on github.com, which older runners do not say to have the second version. */
const knownHost = "results-receiver.actions.githubusercontent.com";

/** Looks where docker buildx looks: fields first, then what a runner sets for actions. */
export function findAccess(fields: AccessFields, environment: Environment): FoundAccess {
  const { ACTIONS_RESULTS_URL = "", ACTIONS_CACHE_URL = "", ACTIONS_RUNTIME_TOKEN = "" } = environment;
  const token = fields.token ?? ACTIONS_RUNTIME_TOKEN;
  const first = fields.url ?? (ACTIONS_CACHE_URL || ACTIONS_RESULTS_URL);
  const isSecond =
    fields.version === undefined
      ? fields.url_v2 !== undefined ||
        parseGoBoolean(environment.ACTIONS_CACHE_SERVICE_V2) === true ||
        URL.parse(first)?.host === knownHost
      : fields.version !== "1";
  const second = fields.url_v2 ?? (ACTIONS_RESULTS_URL || fields.url);
  const url = (isSecond ? second : undefined) || first;
  const missing = [
    ...(url === "" ? ["ACTIONS_RESULTS_URL"] : []),
    ...(token === "" ? ["ACTIONS_RUNTIME_TOKEN"] : []),
  ];
  if (missing.length > 0) return { kind: "missing", missing };
  if (!isSecond) return { kind: "outdated", url };
  return { kind: "found", url: url.endsWith("/") ? url : `${url}/`, token: Secret.of(token) };
}

/** A branch or pull request whose entries a token opens: `refs/heads/main`. Empty for a token that names none. */
export interface GithubRef {
  name: string;
  isWritable: boolean;
}

/** Returns what a token says that it opens, the writable first. GitHub's are JSON Web Tokens; only the service can verify them. */
export function refsOf(token: Secret): GithubRef[] {
  const [, payload = ""] = token.text().split(".");
  const rights = parse(asText(asRecord(parse(Buffer.from(payload, "base64url").toString()))?.ac) ?? "");
  const refs = (Array.isArray(rights) ? rights : []).flatMap((right): GithubRef[] => {
    const [name, permission] = [asText(asRecord(right)?.Scope), asInteger(asRecord(right)?.Permission)];
    return name === undefined ? [] : [{ name, isWritable: ((permission ?? 0) & 2) !== 0 }];
  });
  if (refs.length === 0) return [{ name: "", isWritable: true }];
  return refs.sort((one, other) => Number(other.isWritable) - Number(one.isWritable));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the tag under which a branch has its index: two branches have the same keys in places of their own. */
export function tagOfRef({ name }: Pick<GithubRef, "name">): string {
  return sha256Of(name).slice(0, 8);
}
