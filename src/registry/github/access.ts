import { parseGoBoolean } from "../../go/boolean.ts";
import type { Environment } from "../../home-directory.ts";
import { Secret } from "../../secret.ts";
import { asInteger, asRecord, asText } from "../../service/http/json.ts";
import { sha256Of } from "../../sha256.ts";

/** The address of GitHub's cache service, with a token for it. */
export interface GithubAccess {
  /** Ends with a slash. */
  url: string;
  token: Secret;
  /** The time, in milliseconds, that all requests together may wait for a service that is busy or failing. */
  maxWaitMilliseconds: number;
}

/** The service limits requests per minute. */
export const defaultWaitMilliseconds = 120_000;

/** Fields of an option, which take precedence over environment variables. */
export type AccessFields = Partial<Record<"url" | "url_v2" | "token" | "version", string>>;

/** `missing` lists the environment variables that are needed. An `outdated` service has only the first version of the protocol. */
type FoundAccess =
  | { kind: "found"; url: string; token: Secret }
  | { kind: "missing"; missing: readonly string[] }
  | { kind: "outdated"; url: string };

/** The host of github.com's service, which has the second version. Older runners do not set the variable that says so. */
const githubHost = "results-receiver.actions.githubusercontent.com";

/** Finds the service as docker buildx does: by fields first, then by the variables that a runner sets for actions. */
export function findAccess(fields: AccessFields, environment: Environment): FoundAccess {
  const { ACTIONS_RESULTS_URL = "", ACTIONS_CACHE_URL = "", ACTIONS_RUNTIME_TOKEN = "" } = environment;
  const token = fields.token ?? ACTIONS_RUNTIME_TOKEN;
  const first = fields.url ?? (ACTIONS_CACHE_URL || ACTIONS_RESULTS_URL);
  const isSecond =
    fields.version === undefined
      ? fields.url_v2 !== undefined ||
        parseGoBoolean(environment.ACTIONS_CACHE_SERVICE_V2) === true ||
        URL.parse(first)?.host === githubHost
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

/** A branch or pull request whose entries a token can read: `refs/heads/main`. The name is empty if the token has none. */
export interface GithubRef {
  name: string;
  isWritable: boolean;
}

/** Returns the branches in a token, a JSON Web Token that only the service can verify. Writable branches come first. */
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

/** Returns the tag of a branch's index. */
export function tagOfRef({ name }: Pick<GithubRef, "name">): string {
  return sha256Of(name).slice(0, 8);
}
