/**
 * Dockerfiles built for two platforms by `bough build --docker`, compared with what `docker buildx build` of Docker 28.5 has made of them:
 * the index, and each image's configuration, history and files. Results of Docker are kept in `platforms.recorded`;
 * `RECORD_DOCKER=unix://SOCKET` writes them with the Docker that listens there, and the `docker buildx` in PATH.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTree, type TreeEntry } from "../differential/tree.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";
import { isLeftByDocker } from "./left-of-docker.ts";

setDefaultTimeout(120_000);

const recorder = process.env.RECORD_DOCKER;
const recordedFile = join(import.meta.dir, "platforms.recorded");
const recorded: Record<string, unknown> = JSON.parse(readFileSync(recordedFile, "utf8"));

/** Commands run only where the machine's own programs do: an emulated one is tried in `engine/emulated-run.test.ts`. */
const cases: Record<string, { dockerfile: string[]; options?: string[] }> = {
  "cross-compiled": {
    dockerfile: [
      "FROM --platform=$BUILDPLATFORM base AS build",
      "ARG TARGETPLATFORM TARGETOS TARGETARCH TARGETVARIANT BUILDPLATFORM",
      'RUN echo "$TARGETPLATFORM $TARGETOS $TARGETARCH $TARGETVARIANT on $BUILDPLATFORM" > /out',
      "FROM base",
      "COPY --from=build /out /out",
      'ENTRYPOINT ["cat"]',
      'CMD ["/out"]',
    ],
  },
  "a stage that both share": {
    dockerfile: [
      "FROM --platform=$BUILDPLATFORM base AS tools",
      "RUN mkdir /t && echo tool > /t/tool",
      "FROM tools AS build",
      "ARG TARGETARCH",
      "RUN cp /t/tool /t/$TARGETARCH",
      "FROM scratch",
      "COPY --from=build /t /t",
      "COPY --from=tools /t/tool /same",
    ],
  },
  "only the base": { dockerfile: ["FROM base"] },
  "files and settings": {
    dockerfile: [
      "FROM base",
      "ARG TARGETARCH=given",
      "ENV ARCH=$TARGETARCH",
      "LABEL arch=${TARGETARCH} of=$TARGETOS",
      "WORKDIR /w/$TARGETARCH",
      "COPY --chown=7 f $TARGETARCH",
      "ADD f2 /added/",
      "USER 3",
      "EXPOSE 80",
      "HEALTHCHECK --interval=5s CMD true",
    ],
  },
  scratch: { dockerfile: ["FROM scratch", "ARG TARGETARCH", "COPY f /$TARGETARCH/"] },
  "scratch with a platform": { dockerfile: ["FROM --platform=linux/s390x scratch", "COPY f /f"] },
  "a fixed platform": {
    dockerfile: [
      "FROM --platform=linux/arm64 base AS arm",
      "COPY f /arm",
      "FROM base",
      "COPY --from=arm /arm /platform /from-arm/",
    ],
  },
  "the platform in a stage's name": {
    dockerfile: [
      "FROM base AS stage-amd64",
      "COPY f /amd",
      "FROM base AS stage-arm64",
      "COPY f2 /arm",
      "FROM stage-$TARGETARCH",
      "COPY f /both",
    ],
  },
  "the platform in an image's name": {
    dockerfile: ["ARG TARGETARCH", "FROM base-$TARGETARCH", "COPY f /f"],
  },
  "files of the image for each platform": {
    dockerfile: ["FROM scratch", "COPY --from=base /platform /p", "COPY --from=base /etc/passwd /users"],
  },
  mounts: {
    dockerfile: [
      "FROM --platform=$BUILDPLATFORM base AS build",
      "ARG TARGETARCH",
      "RUN --mount=type=cache,target=/c,id=c-$TARGETARCH --mount=from=base,target=/b cp /b/platform /own && echo $TARGETARCH > /c/a && cp /c/a /out",
      "FROM scratch",
      "COPY --from=build /own /out /",
    ],
  },
  triggers: { dockerfile: ["FROM triggers", "COPY f2 /f2"] },
  "three, with a variant": {
    dockerfile: [
      "FROM scratch",
      "ARG TARGETVARIANT TARGETPLATFORM",
      "ENV V=$TARGETVARIANT P=$TARGETPLATFORM",
      "COPY f /f",
    ],
    options: ["--platform", "linux/amd64,linux/arm/v7,linux/arm64"],
  },
  "one that is not the machine's": {
    dockerfile: ["FROM base", "COPY f /f"],
    options: ["--platform", "linux/arm64"],
  },
  provenance: { dockerfile: ["FROM base", "COPY f /f"], options: ["--provenance=mode=min"] },
  annotations: {
    dockerfile: ["FROM base"],
    options: [
      ...["--annotation", "a=1", "--annotation", "index:b=2", "--annotation", "manifest[linux/arm64]:c=3"],
      ...["--annotation", "manifest-descriptor[linux/amd64]:d=4", "--annotation", "index,manifest:e=5"],
    ],
  },
};

const directory = temporaryDirectory();
const environment = { BOUGH_HOME: temporaryDirectory() };
let registry: Registry;

beforeAll(async () => {
  registry = await Registry.start();
  const prepare = (root: string, architecture: string) =>
    writeFileSync(join(root, "platform"), `${architecture}\n`);
  const architectures = ["amd64", "arm64"];
  const push = async (name: string, options: Parameters<typeof makeBusyboxLayout>[1]) =>
    registry.push(await makeBusyboxLayout(join(directory, name), { ...options, prepare }), `${name}:1`);
  await push("base", { architectures });
  await push("base-amd64", { architectures: ["amd64"] });
  await push("base-arm64", { architectures: ["arm64"] });
  await push("triggers", {
    architectures,
    configuration: { OnBuild: ["ARG TARGETARCH", "COPY f /$TARGETARCH"] },
  });
  writeFiles(directory, { "context/f": "f\n", "context/f2": "f2\n" });
});
afterAll(() => registry.stop());

test.each(Object.entries(cases))("%s", async (name, { dockerfile, options = [] }) => {
  writeFiles(directory, { "context/Dockerfile": `${dockerfile.join("\n")}\n` });
  const given = options.includes("--platform")
    ? options
    : ["--platform", "linux/amd64,linux/arm64", ...options];
  const contexts = ["base", "base-amd64", "base-arm64", "triggers"].flatMap((image) => [
    "--build-context",
    `${image}=docker-image://${registry.host}/${image}:1`,
  ]);
  const layout = join(directory, "layout-out");
  rmSync(layout, { recursive: true, force: true });
  const words = [...given, ...contexts, "--output", `type=oci,dest=${layout},tar=false`];
  if (recorder !== undefined) {
    const attests = options.some((option) => option.startsWith("--provenance")) ? [] : ["--provenance=false"];
    run([
      "docker",
      "buildx",
      "build",
      "--network=host",
      "--no-cache",
      ...attests,
      ...words,
      join(directory, "context"),
    ]);
    recorded[name] = await describeLayout(layout);
    writeFileSync(recordedFile, `${JSON.stringify(recorded, null, 1)}\n`);
    rmSync(layout, { recursive: true, force: true });
  }
  const built = await runBough(["--local", "build", "--docker", ...words, "context"], {
    workingDirectory: directory,
    environment,
  });
  expect(built.exitCode === 0 ? "" : built.stderr).toBe("");
  const made = await describeLayout(layout);
  expect(made).toEqual(recorded[name] as typeof made);
});

interface Entry {
  mediaType: string;
  digest: string;
  platform?: object;
  annotations?: Record<string, string>;
}

/** Returns what a layout has, without digests and times. */
async function describeLayout(layout: string) {
  const read = (digest: string) =>
    JSON.parse(readFileSync(join(layout, "blobs/sha256", digest.slice("sha256:".length)), "utf8"));
  const { manifests } = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
  const top: Entry = manifests[0];
  const isIndex = top.mediaType.includes("index");
  const index = isIndex ? read(top.digest) : undefined;
  const entries: Entry[] = isIndex ? index.manifests : [top];
  return {
    mediaType: top.mediaType,
    annotations: withoutDigests(index?.annotations),
    manifests: await Promise.all(
      entries.map(async ({ digest, mediaType, platform, annotations }) => {
        const manifest = read(digest);
        const isAttestation = annotations?.["vnd.docker.reference.type"] !== undefined;
        return {
          ...{ mediaType, annotations: withoutDigests(annotations) },
          // A lone image has none in the layout's index, or has it, by the version of the program.
          ...(isIndex && { platform }),
          manifest: { mediaType: manifest.mediaType, annotations: withoutDigests(manifest.annotations) },
          image: isAttestation ? undefined : await describeImage(layout, manifest, read),
        };
      }),
    ),
  };
}

/** Those of an entry in a layout name the image. */
function withoutDigests(annotations: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(annotations)
      .filter(
        ([key]) =>
          !/^(org\.opencontainers\.image\.(ref\.name|created)|io\.containerd\.image\.name)$/.test(key),
      )
      .map(([key, value]): [string, string] => [key, value.startsWith("sha256:") ? "sha256:..." : value])
      .sort(),
  );
}

async function describeImage(
  layout: string,
  manifest: { config: Entry; layers: Entry[] },
  read: (digest: string) => Record<string, unknown>,
) {
  const { architecture, os, variant, config, history } = read(manifest.config.digest);
  const files = new Map<string, TreeEntry>();
  for (const { digest } of manifest.layers) {
    const blob = Bun.file(join(layout, "blobs/sha256", digest.slice("sha256:".length))).stream();
    for (const [path, entry] of await readTree(blob.pipeThrough(new DecompressionStream("gzip"))))
      files.set(path, entry);
  }
  const lines = history as { created_by?: string; comment?: string; empty_layer?: boolean }[];
  return {
    ...{ architecture, os, variant, config: sorted(config) },
    history: lines.map(({ created_by, comment, empty_layer }) => ({ created_by, comment, empty_layer })),
    layers: manifest.layers.map(({ mediaType }) => mediaType),
    files: [...files]
      .filter(
        ([path, other]) =>
          !/^\/(bin|etc|dev|proc|sys)(\/|$)|^\/$/.test(path) &&
          !isLeftByDocker({ path, bough: undefined, other }),
      )
      .map(([path, { line }]) => `${path} ${line}`)
      .sort(),
  };
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function run(command: string[]): void {
  const { success, stderr } = Bun.spawnSync(command, { env: { ...process.env, DOCKER_HOST: recorder } });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
}
