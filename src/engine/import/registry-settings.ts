import { retriesIn } from "../../registry/retry.ts";
import type { Environment } from "../system/programs.ts";

/** skopeo's option for the number of further attempts. */
export function retryOption(environment: Environment): string[] {
  return ["--retry-times", String(retriesIn(environment))];
}

/** Returns the content of a file with credentials for one registry, as skopeo reads it. */
export function authFileText(registry: string, username: string, password: string): string {
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  return JSON.stringify({ auths: { [registry]: { auth } } });
}
