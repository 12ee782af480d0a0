import type { RemoteBases } from "../../builder/job.ts";
import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import { registryHost } from "../../registry/repository.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { AttestationOptions } from "../export/attestation-options.ts";
import type { BuildOutput } from "../export/build-outputs.ts";
import type { BuildService } from "./build-services.ts";

interface AskedImage {
  /** The part of the Dockerfile that the target needs. */
  needed: Pick<Dockerfile, "instructions">;
  outputs: readonly BuildOutput[];
  options: { attestations: AttestationOptions | undefined };
}

/**
 * Has the engine only note what bases are made of, for a build that is pushed to their registry, goes nowhere else, and needs no
 * contents of their files: their layers are mounted there. Any other build imports its bases.
 */
export async function openThinBases(
  build: AskedImage,
  { connection: { service }, supports }: Pick<BuildService, "connection" | "supports">,
  { runtime: { fetch, clock, environment, signal } }: Surroundings,
): Promise<RemoteBases | undefined> {
  const registry = needsContents(build) ? undefined : onlyRegistry(build);
  if (registry === undefined || !supports.isInThisProcess || !(await supports.remoteLayers()))
    return undefined;
  const { createRemoteBases } = await import("../../builder/bases/remote-base.ts");
  const { openBlobSource } = await import("../../registry/open-blob-store.ts");
  const bases = createRemoteBases({
    ...{ service, registry, signal },
    tables: { areRequired: build.needed.instructions.some(looksUpPaths) },
    openSource: (address) => openBlobSource(address, { fetch, clock, environment }),
  });
  return { ...bases, isOnlyPushed: true };
}

function needsContents({ needed, outputs, options }: AskedImage): boolean {
  return (
    needed.instructions.some(
      (each) => each.name === "RUN" || (each.name === "COPY" && each.from !== undefined),
    ) ||
    outputs.some(({ recompresses }) => recompresses) ||
    options.attestations?.sbom !== undefined
  );
}

/** True for an instruction that follows links of the image, and keeps the attributes of its directories. */
function looksUpPaths({ name }: Instruction): boolean {
  return ["COPY", "ADD", "WORKDIR"].includes(name);
}

/** Returns the host of the registry that the image is pushed to, if it has no other destination. */
function onlyRegistry({ outputs }: AskedImage): string | undefined {
  const hosts = new Set(
    outputs.flatMap(({ destinations }) =>
      destinations.map((each) => (each.kind === "registry" ? registryHost(each.reference) : undefined)),
    ),
  );
  const [host] = hosts;
  return hosts.size === 1 ? host : undefined;
}
