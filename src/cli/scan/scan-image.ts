/**
 * Lists what is in an image by running another one, a scanner, over its files.
 * https://github.com/moby/buildkit/blob/master/docs/attestations/sbom-protocol.md
 */
import { supportOf } from "../../builder/service-support.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { ScanImage } from "../export/attest.ts";
import { findDescription } from "../references/image-argument.ts";
import { requireExitCode, runInstance } from "../run/instance.ts";
import { resolveProcessSettings } from "../run/process-settings.ts";
import { findOrPull } from "../run/pull.ts";
import type { Connection } from "../service/connection.ts";
import { buildTimeout, type Timeout } from "../service/timeout.ts";
import { readScanResults } from "./scan-results.ts";

/** The name of what is scanned: the scanner names its first file after it. */
const source = "/run/src/core/sbom";
/** The directory of what is scanned beside it: each part has a name that begins like the image's. */
const extraSources = "/run/src/extras";
const destination = "/run/out";
/** How much of a scanner's errors a message has. */
const maxErrorCharacters = 2000;

type Generator = Parameters<ScanImage>[0];
type Scanned = Parameters<ScanImage>[1];

export async function scanImage(
  generator: Generator,
  scanned: Scanned,
  connection: Connection,
  timeout: Timeout,
  surroundings: Surroundings,
): ReturnType<ScanImage> {
  const { service } = connection;
  if (!(await supportOf(service).mounts()).secrets)
    throw new BoughError(`--sbom: ${service.address} has no mounts, through which a scanner gets the image`, {
      hint: `Leave generator=${generator.image} out: bough lists the packages itself.`,
    });
  const pulled = { image: generator.image, pull: "missing" as const };
  const scanner = await findOrPull(pulled, surroundings, connection);
  surroundings.log.info(`scanning the image with ${generator.image}`);
  const { outcome, timeoutSeconds } = await runScanner(
    { generator, scanner, ...scanned, timeout },
    surroundings,
    connection,
  );
  const written = outcome.image === scanner ? undefined : outcome.image;
  try {
    requireSuccess(generator, outcome, timeoutSeconds);
    if (written === undefined) throw withoutResult(generator);
    const results = await readScanResults(service, written, destination, generator.image);
    if (results.length === 0) throw withoutResult(generator);
    return results;
  } finally {
    // Whether it can be removed says nothing about the list.
    if (written !== undefined)
      await service.removeImage(written).catch((error: unknown) => {
        if (!(error instanceof NotFoundError))
          surroundings.log.warn(`the image that the scanner has written to stays: ${messageOf(error)}`);
      });
  }
}

async function runScanner(
  {
    generator,
    scanner,
    image,
    extras,
    timeout,
  }: { generator: Generator; scanner: string; timeout: Timeout } & Scanned,
  { runtime, log }: Surroundings,
  connection: Connection,
): Promise<{ outcome: OperationOutcome; timeoutSeconds: number }> {
  const { service } = connection;
  const { Entrypoint = [], Cmd = [] } = (await findDescription(scanner, connection)).config;
  const words = [...Entrypoint, ...Cmd];
  if (words.length === 0)
    throw new BoughError(`--sbom: the scanner ${generator.image} has neither ENTRYPOINT nor CMD`, {
      hint: "An image that scans begins with its own command: docker/buildkit-syft-scanner is one.",
    });
  const variables = Object.entries(generator.variables).map(([name, value]) => [
    `BUILDKIT_SCAN_${name}`,
    value,
  ]);
  const found = await resolveProcessSettings(
    {
      command: { form: "exec", words },
      env: {
        ...Object.fromEntries(variables),
        BUILDKIT_SCAN_SOURCE: source,
        ...(extras.length > 0 && { BUILDKIT_SCAN_SOURCE_EXTRAS: extraSources }),
        BUILDKIT_SCAN_DESTINATION: `${destination}/`,
      },
      ...{ cwd: undefined, user: undefined, ignoresConfig: false, step: undefined },
    },
    scanner,
    connection,
  );
  const timeoutSeconds = await buildTimeout(timeout, service);
  const request: InstanceRequest = {
    ...{ image: scanner, ...found, disposable: false, timeout: timeoutSeconds },
    entries: { [destination]: { type: "directory", uid: 0, gid: 0, mode: "0755" } },
    mounts: [
      { type: "tmpfs", target: "/tmp" },
      filesOf(image, source),
      ...extras.map((extra) => filesOf(extra.image, `${extraSources}/sbom-${extra.name}`)),
    ],
  };
  const quiet = { ...log, info: log.debug };
  const outcome = await runInstance(request, { service, signal: runtime.signal, log: quiet });
  return { outcome, timeoutSeconds };
}

function requireSuccess(generator: Generator, outcome: OperationOutcome, timeoutSeconds: number): void {
  const exitCode = requireExitCode(outcome, timeoutSeconds);
  if (exitCode === 0) return;
  const said = outcome.stderr.text.trim().slice(-maxErrorCharacters);
  throw new BoughError(
    `--sbom: the scanner ${generator.image} ended with exit code ${exitCode}${said === "" ? "" : `: ${said}`}`,
  );
}

function filesOf(image: string, target: string): InstanceMount {
  return { type: "bind", target, image, source: "/", readonly: true };
}

function withoutResult({ image }: Generator): BoughError {
  return new BoughError(`--sbom: the scanner ${image} wrote nothing to $BUILDKIT_SCAN_DESTINATION`, {
    hint: "A scanner writes sbom.spdx.json there, an in-toto statement.",
  });
}
