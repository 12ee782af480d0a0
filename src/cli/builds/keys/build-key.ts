import { buildPlatforms } from "../../../builder/bases/base.ts";
import { type BaseKeys, createBaseKeys } from "../../../builder/keys/base-keys.ts";
import { findContentKey, type TargetKey } from "../../../builder/keys/content-key.ts";
import type { BaseKey, KeyJob } from "../../../builder/keys/key-job.ts";
import { createRemoteSourceKeys } from "../../../builder/keys/remote-source-keys.ts";
import type { KeyPins } from "../../../builder/reference-lock.ts";
import { supportOf } from "../../../builder/service-support.ts";
import { resultConfiguration } from "../../../builder/steps/configure-stage.ts";
import { formatPlatform, type Platform } from "../../../image/platform.ts";
import { sha256Of } from "../../../sha256.ts";
import type { Connections } from "../../service/connections.ts";
import { chooseServices } from "../build-services.ts";
import { readCheckedDockerfile } from "../checked-dockerfile.ts";
import { type BuildInputs, readBuildInputs } from "../inputs.ts";
import { type FileTables, openFileTables } from "../prepare-build.ts";
import { machineOf } from "../prepared-build.ts";
import type { BuildInvocation } from "../request.ts";
import { openLock } from "../result-files.ts";
import { besideImage } from "./beside-image.ts";
import { placeholderKey, withKey } from "./key-in-tags.ts";

/** The content key of what a build makes. */
export interface BuildKey {
  /** SHA-256, in hex: of all platforms, and of what is written beside the image. */
  key: string;
  pins: KeyPins;
  platforms: readonly { platform: Platform; target: TargetKey }[];
}

interface KeyFinding {
  connectTo: Connections["connectTo"];
  /** The keys of other targets, by what stands for their images in this one's contexts. */
  linked?: ReadonlyMap<string, BuildKey>;
}

/** Finds the content keys of builds that share services and bases. */
interface KeyFinder {
  /** Remembers the hashes of files that were read, for the next command. */
  save(): void;
  find(invocation: BuildInvocation, finding: KeyFinding): Promise<BuildKey>;
}

/** Bases are found once for all builds. Files are read each time, unless nothing has changed by their `stat`. */
export function createKeyFinder(signal: AbortSignal, tables = new Map<string, FileTables>()): KeyFinder {
  const bases = new Map<string, BaseKeys>();
  const addresses = createRemoteSourceKeys();
  return {
    async find(invocation, { connectTo, linked = new Map() }) {
      const { runtime, options, log } = invocation;
      const opened = await openLock(invocation);
      const quiet = { ...log, warn: () => undefined };
      const reading = { log: quiet, keepsContext: true, lock: opened?.lock };
      using inputs = await readBuildInputs(invocation, reading);
      const { dockerfile } = await readCheckedDockerfile(inputs, invocation, opened);
      const secrets = await inputs.secrets.load();
      const machine = machineOf(runtime);
      const found: BuildKey["platforms"][number][] = [];
      const images = new Map<string, string>();
      for (const service of chooseServices(invocation, inputs.platforms)) {
        const connection = await connectTo(service);
        const supports = supportOf(connection.service, inputs.dialect);
        const isPulled = options.pull === true;
        const known = JSON.stringify([service.option, isPulled]);
        const create = () =>
          createBaseKeys({
            ...{ service: connection.service, supports, store: connection.store, signal },
            ...{ openRegistry: machine.openRegistry, lock: opened?.lock, pullsImages: isPulled },
          });
        const own = opened === undefined ? bases.getOrInsertComputed(known, create) : create();
        for (const target of service.platforms.length === 0 ? [undefined] : service.platforms) {
          const platforms = await buildPlatforms(target, supports);
          const { hashes } = openFileTables(connection.store, inputs, tables);
          const job: KeyJob = {
            ...{ platforms, signal, clock: runtime.clock },
            asked: {
              ...inputs,
              dockerfile,
              secrets,
              commands: { network: inputs.network.mode, hosts: inputs.network.hosts },
            },
            source: { context: inputs.context, ignore: inputs.ignore, files: inputs.files, hashes },
            findBase: async (reference, platform) =>
              linkedBase(linked.get(reference), platform ?? platforms.build, inputs) ??
              own.find(reference, platform),
            hashUrl: addresses.hashUrl,
            findCommit: addresses.findCommit,
            access: {
              ...{ buildArgs: inputs.buildArgs, secrets, maxAddBytes: inputs.maxAddBytes },
              ...{ fetchUrl: machine.fetchUrl, git: machine.git, lock: opened?.lock },
              ...{ clock: runtime.clock, signal, subject: "ADD", warn: log.warn },
            },
          };
          found.push({ platform: platforms.target, target: await findContentKey(job) });
        }
        for (const [name, digest] of own.pins) images.set(name, digest);
      }
      // A place for the key counts as such.
      const beside = besideImage(withKey(invocation, placeholderKey), inputs.buildArgs);
      return { key: joinKeys(found, beside), pins: { images, ...addresses.pins }, platforms: found };
    },
    save() {
      for (const { hashes } of tables.values()) hashes.save();
    },
  };
}

/** Returns another target as a base. One that has a single image serves for every platform, as in docker buildx bake. */
function linkedBase(
  key: BuildKey | undefined,
  platform: Platform,
  asked: Pick<BuildInputs, "dialect">,
): BaseKey | undefined {
  const [first, ...others] = key?.platforms ?? [];
  const wanted = formatPlatform(platform);
  const own =
    others.length === 0 ? first : key?.platforms.find((each) => formatPlatform(each.platform) === wanted);
  if (own === undefined) return undefined;
  const { stage } = own.target;
  return { hash: stage.layer.hash, config: resultConfiguration(stage, asked), author: stage.author };
}

/** The key of one image is that of its target, if nothing is written beside it. */
function joinKeys(found: BuildKey["platforms"], beside: string | undefined): string {
  const [first, ...others] = found.map(({ target }) => target.key);
  if (first === undefined) throw new Error("a build has a service");
  if (others.length === 0 && beside === undefined) return first;
  return sha256Of(JSON.stringify([[first, ...others], beside ?? null]));
}
