import { BoughError, usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { printResult } from "../../command-line/result.ts";
import type { ServiceWatcher } from "../../service/connection.ts";
import { openConnections } from "../../service/connections.ts";
import { readBuildOptions } from "../options/build-options.ts";
import type { BuildInvocation } from "../request.ts";
import { createKeyFinder } from "./build-key.ts";
import { createExistingImages } from "./existing-image.ts";
import { placeholderKey, withKey } from "./key-in-tags.ts";
import { keyedBuild } from "./keyed-build.ts";
import { isForced, skippableBuild } from "./skippable.ts";

interface OwnKey {
  invocation: BuildInvocation;
  key: string;
  /** The digest of the image that is there already, with `--skip-existing`. */
  existing: string | undefined;
}

/** Finds the content key of `bough build`, and puts it into the options. The build takes over the connections that this needs. */
export async function findOwnKey(
  invocation: BuildInvocation,
  watcher: ServiceWatcher | undefined,
): Promise<OwnKey> {
  const { options, runtime } = invocation;
  // An invalid option is the same error as without a key.
  readBuildOptions(withKey(invocation, placeholderKey));
  const finder = createKeyFinder(runtime.signal);
  await using holder = new AsyncDisposableStack();
  const connections = holder.use(openConnections(invocation, watcher));
  const find = () => finder.find(invocation, connections);
  const found = await find();
  finder.save();
  const own = withKey(invocation, found.key);
  const skippable = options["skip-existing"] === true ? requireSkippable(own, found.key) : undefined;
  const existing =
    skippable === undefined || isForced(own)
      ? undefined
      : await createExistingImages(runtime, runtime.signal)
          .find(skippable.places, found.key)
          .catch((error: unknown) => {
            runtime.signal.throwIfAborted();
            if (!(error instanceof BoughError)) throw error;
            invocation.log.warn(`the image is built: it can't be looked for: ${error.message}`);
            return undefined;
          });
  const { key } = found;
  if (existing !== undefined && !asksForMore(options)) return { key, existing, invocation: own };
  const keyed = { ...keyedBuild(found, skippable?.annotations, find), connections };
  holder.move();
  return { key, existing: undefined, invocation: { ...own, keyed } };
}

function requireSkippable(invocation: BuildInvocation, key: string) {
  const skippable = skippableBuild(invocation, key);
  if (skippable !== undefined || isForced(invocation)) return skippable;
  throw usageError(
    wording`${{ option: "skip-existing" }}: the image is not pushed, or not only`,
    wording`It skips what the registries of the tags have: give ${{ option: "push" }}.`,
  );
}

/** True if somebody wants to know of the build what only a build knows. */
function asksForMore(options: BuildInvocation["options"]): boolean {
  const names = ["iidfile", "metadata-file", "trace", "report", "timings"] as const;
  return names.some((name) => (options[name] ?? false) !== false);
}

/** Prints what is known of an image that is there already. */
export function printExisting({ invocation, key, existing: digest = "" }: OwnKey): void {
  const tags = invocation.options.tag ?? [];
  printResult(invocation, {
    id: digest,
    json: { image: null, tag: tags[0] ?? null, tags, session: null, digest, exported: [], key },
    table: () => ({
      header: ["DIGEST", "TAG"],
      rows: (tags.length === 0 ? [null] : tags).map((tag) => [{ whole: digest }, tag && { whole: tag }]),
    }),
  });
}
