import type { Clock } from "../clock.ts";
import { beforeDeadline, endHelper, startHelper } from "../engine/system/helper.ts";
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
    const command = [program, "get"];
    const helper = startHelper(command, { environment: environmentOf(environment) });
    const perform = async () => {
      helper.stderr.cancel().catch(() => undefined);
      helper.stdin.write(input);
      await Promise.resolve(helper.stdin.end()).catch(() => undefined);
      const [output, status] = await Promise.all([new Response(helper.stdout).text(), helper.exited]);
      return status === 0 ? output : undefined;
    };
    try {
      return await beforeDeadline(helper, command, perform(), { clock, seconds: helperSeconds });
    } finally {
      endHelper(helper);
    }
  };
}

/** Helpers of clouds read their own variables, and get none of bough's. */
function environmentOf(environment: Environment): Record<string, string> {
  const passed = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(BOUGH|CONTREE)_/.test(entry[0]),
  );
  return Object.fromEntries(passed);
}
