import type { Environment } from "../system/programs.ts";

/** skopeo's option for the number of further attempts. */
export function retryOption({ BOUGH_RETRY }: Environment): string[] {
  return ["--retry-times", /^\d{1,3}$/.test(BOUGH_RETRY ?? "") ? (BOUGH_RETRY ?? "") : "2"];
}

/** Returns the content of a file with credentials for one registry, as skopeo reads it. */
export function authFileText(registry: string, username: string, password: string): string {
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  return JSON.stringify({ auths: { [registry]: { auth } } });
}
