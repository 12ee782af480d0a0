import type { Clock } from "../clock.ts";
import { runHelper } from "../programs/helper.ts";
import type { Environment, RunCredentialHelper } from "./credentials.ts";

/** A helper may ask a keyring, which may ask a person. */
const helperSeconds = 60;

/**
 * Returns a function that runs docker's credential helpers, which are in the PATH. One that is missing, or that fails, has no
 * credentials: its file may be one of another machine. https://github.com/docker/docker-credential-helpers
 */
export function createCredentialHelpers(environment: Environment, clock: Clock): RunCredentialHelper {
  return async (name, input) => {
    const program = Bun.which(`docker-credential-${name}`, { PATH: environment.PATH ?? "" });
    if (program === null) return undefined;
    const { status, stdout } = await runHelper([program, "get"], {
      environment: environmentOf(environment),
      input,
      clock,
      seconds: helperSeconds,
    });
    return status === 0 ? stdout : undefined;
  };
}

/** Helpers of clouds read their own variables, and get none of bough's. */
function environmentOf(environment: Environment): Record<string, string> {
  const passed = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(BOUGH|CONTREE)_/.test(entry[0]),
  );
  return Object.fromEntries(passed);
}
