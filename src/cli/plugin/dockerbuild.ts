/**
 * Writes builds as a `.dockerbuild` archive, which Docker Desktop can import and docker's action for GitHub uploads: a compressed OCI
 * layout with a manifest for each build. https://docs.docker.com/reference/cli/docker/buildx/history/export/
 */
import type { BuildRecord, BuildStep } from "../../history/build-record.ts";
import { predicateAnnotation } from "../../image/attestation-manifest.ts";
import { digestOf, hexOf } from "../../image/digest.ts";
import { type Descriptor, mediaTypes } from "../../image/oci-layout.ts";
import { machinePlatform, parsePlatform } from "../../image/platform.ts";
import { endBytes, fileHeader, padding } from "../../image/tar-header.ts";
import { predicateOf } from "../builds/metadata/slsa.ts";
import { nameOfStep } from "./history-record.ts";
import { encodeStatusLog } from "./status-log.ts";

interface ExportedBuild {
  record: BuildRecord;
  /** Returns the output of a step. */
  read(step: number): string | undefined;
}

const recordType = "application/vnd.buildkit.historyrecord.v0";
const logType = "application/vnd.buildkit.status.v0";
const predicateType = "https://slsa.dev/provenance/v0.2";

export function createDockerbuildArchive(builds: readonly ExportedBuild[]): Uint8Array {
  const blobs = new Map<string, Uint8Array>();
  const put = (mediaType: string, content: Uint8Array | object): Descriptor => {
    const bytes =
      content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content, undefined, 2));
    const digest = digestOf(bytes);
    blobs.set(`blobs/sha256/${hexOf(digest)}`, bytes);
    return { mediaType, digest, size: bytes.byteLength };
  };
  const manifests = builds.map((build) => ({
    ...putBuild(build, put),
    ...(builds.length > 1 && { annotations: { "vnd.buildkit.history.reference": build.record.id } }),
  }));
  const [first] = manifests;
  const top =
    first === undefined || builds.length > 1
      ? put(mediaTypes.index, { schemaVersion: 2, mediaType: mediaTypes.index, manifests })
      : first;
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [top] };
  const files = [
    ...blobs,
    ["index.json", Buffer.from(JSON.stringify(index))] as const,
    ["oci-layout", Buffer.from(JSON.stringify({ imageLayoutVersion: "1.0.0" }))] as const,
  ];
  return Bun.gzipSync(Buffer.concat([...files.flatMap(tarEntry), Buffer.alloc(endBytes)]));
}

function putBuild(
  { record, read }: ExportedBuild,
  put: (mediaType: string, content: Uint8Array | object) => Descriptor,
): Descriptor {
  const { origin, inputs, startedAt } = record;
  const platform = origin.platforms[0] ?? machinePlatform();
  const finishedAt = startedAt + record.seconds * 1000;
  const described = {
    ...{ id: record.id, startedAt, finishedAt, inputs, labels: new Map(), secretIds: [] },
    ...{ dockerfile: origin.dockerfile, buildArgs: origin.buildArgs, target: origin.target ?? undefined },
    contextUrl: inputs.find(({ name }) => name === origin.context)?.name,
  };
  const logs = put(logType, encodeStatusLog(record, read, nameOfStep));
  const provenance = {
    ...put(mediaTypes.statement, predicateOf(described, parsePlatform(platform), "max")),
    annotations: { [predicateAnnotation]: predicateType },
  };
  const config = put(recordType, historyRecordOf(record, { logs, provenance, platform }));
  const { manifest: mediaType } = mediaTypes;
  return put(mediaType, { schemaVersion: 2, mediaType, config, layers: [logs, provenance] });
}

/** https://github.com/moby/buildkit/blob/master/api/services/control/control.proto, BuildHistoryRecord */
function historyRecordOf(
  { id, origin, startedAt, seconds, steps, result, error, status }: BuildRecord,
  { logs, provenance, platform }: { logs: Descriptor; provenance: Descriptor; platform: string },
): object {
  const counted = steps.filter((step) => step.counted !== null);
  const count = (outcomes: readonly BuildStep["outcome"][]) =>
    counted.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const args = origin.buildArgs.flatMap(({ name, value }) =>
    value === null ? [] : [[`build-arg:${name}`, value] as const],
  );
  const name = result?.tags.join(",") ?? "";
  return {
    Ref: id,
    Frontend: "dockerfile.v0",
    FrontendAttrs: {
      filename: origin.dockerfile,
      ...(origin.target !== null && { target: origin.target }),
      ...(origin.platforms.length > 0 && { platform: origin.platforms.join(",") }),
      ...Object.fromEntries(args),
    },
    ...(name !== "" && { Exporters: [{ Type: "image", Attrs: { name } }] }),
    ...(error !== null && { error: { code: status === "interrupted" ? 1 : 2, message: error.message } }),
    CreatedAt: timestamp(startedAt),
    CompletedAt: timestamp(startedAt + seconds * 1000),
    logs: buildkitDescriptor(logs),
    Result: {
      Attestations: [
        { ...buildkitDescriptor(provenance), annotations: { [predicateAnnotation]: predicateType } },
      ],
    },
    numTotalSteps: counted.length,
    numCompletedSteps: count(["cached", "made", "done"]),
    numCachedSteps: count(["cached"]),
    DefaultPlatform: platform,
    localState: {
      Target: origin.target ?? "default",
      LocalPath: origin.context,
      DockerfilePath: origin.dockerfile,
    },
  };
}

/** Returns a descriptor with the field names of BuildKit's API. */
function buildkitDescriptor({ mediaType, digest, size }: Descriptor): object {
  return { media_type: mediaType, digest, size };
}

function timestamp(milliseconds: number): object {
  const seconds = Math.floor(milliseconds / 1000);
  return { seconds, nanos: Math.floor((milliseconds - seconds * 1000) * 1e6) };
}

function tarEntry([path, bytes]: readonly [string, Uint8Array]): Uint8Array[] {
  const size = bytes.byteLength;
  const header = fileHeader({ path, size, mode: 0o644, uid: 0, gid: 0 }, new Date(0));
  return [header, bytes, Buffer.alloc(padding(size))];
}
