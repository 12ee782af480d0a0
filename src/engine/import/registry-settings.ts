import type { Environment } from "../system/programs.ts";
import { isLoopback } from "./image-source.ts";

/** True for a registry whose certificate is checked: as the user says, else not for those of this machine. */
export function verifiesTls(registry: string, { BOUGH_TLS_VERIFY }: Environment): boolean {
  return BOUGH_TLS_VERIFY === "true" || (BOUGH_TLS_VERIFY !== "false" && !isLoopback(registry));
}

/** skopeo's option for the number of further attempts. */
export function retryOption({ BOUGH_RETRY }: Environment): string[] {
  return ["--retry-times", /^\d{1,3}$/.test(BOUGH_RETRY ?? "") ? (BOUGH_RETRY ?? "") : "2"];
}

/** Returns the content of a file with credentials for one registry, as skopeo reads it. */
export function authFileText(registry: string, username: string, password: string): string {
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  return JSON.stringify({ auths: { [registry]: { auth } } });
}
