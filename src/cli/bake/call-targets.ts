/** `--call` and `--check`: prints findings, arguments or stages of targets instead of building them, as docker buildx bake does. */
import { goJson } from "../../go/json.ts";
import { runCheckCommand } from "../builds/check.ts";
import { describeDockerfile } from "../builds/describe-dockerfile.ts";
import type { Call } from "../builds/options/input-definitions.ts";
import { createPastChanges, type PastChanges } from "../history/past-changes.ts";
import type { BakeInvocation } from "./options/bake-options.ts";
import { definitionOf, type ResolvedBake, type ResolvedTarget } from "./resolve.ts";
import { bakeCallOf, type Method, methodOf } from "./target-call.ts";
import { withTarget } from "./target-error.ts";
import { buildOf, placeholder } from "./target-request.ts";

/** Calls the method of each target, in the order of their names. Returns the first exit code that is not 0. */
export async function callTargets(
  targets: readonly ResolvedTarget[],
  bake: ResolvedBake,
  invocation: BakeInvocation,
): Promise<number> {
  const { runtime } = invocation;
  const { isJson, ignoresStatus } = bakeCallOf(invocation.options);
  const results = new Map<string, { method: Method; text: string }>();
  let exitCode = 0;
  let separator = "";
  using past = runtime.isPlugin === true ? undefined : createPastChanges(runtime);
  for (const target of [...targets].sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const method = methodOf(target);
    if (method === undefined) continue;
    let text = "";
    const stdout = { ...runtime.stdout, write: (part: string) => (text += part) };
    const own = isJson ? { ...invocation, runtime: { ...runtime, stdout } } : invocation;
    if (!isJson) {
      const { description } = target.fields;
      runtime.stdout.write(`${separator}${target.name}\n${description ? `${description}\n` : ""}\n`);
      separator = "\n";
    }
    const code = await callTarget(target, { method, isJson, ignoresStatus, past }, own);
    if (exitCode === 0 && !ignoresStatus) exitCode = code;
    results.set(target.name, { method, text });
  }
  if (isJson) runtime.stdout.write(`${goJson(resultsOf(bake, results), 2)}\n`);
  return exitCode;
}

async function callTarget(
  target: ResolvedTarget,
  call: Call & { method: Method; past: PastChanges | undefined },
  invocation: BakeInvocation,
): Promise<number> {
  const { method } = call;
  try {
    const own = buildOf(target, () => placeholder, invocation);
    return method === "check"
      ? await runCheckCommand(call, own, call.past)
      : await describeDockerfile({ ...call, method }, own);
  } catch (error) {
    throw withTarget(error, target);
  }
}

/** Returns the definition, as `--print` has it, with the result of each target. */
function resultsOf(
  bake: ResolvedBake,
  results: ReadonlyMap<string, { method: Method; text: string }>,
): unknown {
  const { group, target } = definitionOf(bake);
  const called = Object.entries(target).map(([name, build]) => {
    const result = results.get(name);
    return [name, { build, ...(result !== undefined && { [result.method]: JSON.parse(result.text) }) }];
  });
  return { group, target: Object.fromEntries(called) };
}
