/** `--platform-service`: the platforms of a build on several services at the same time. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";
import { type ServerProcess, startArm64Server } from "../support/server.ts";

const both = ["--platform", "linux/amd64,linux/arm64"];
const onArm = ["--platform-service", "linux/arm64=arm"];

interface Profile {
  url?: string | undefined;
  token?: string | null;
}

/** Returns a function that runs bough in a directory, with profiles and a home of its own. */
function createBough(workingDirectory: string, profiles: Readonly<Record<string, Profile>>) {
  const configuration = temporaryDirectory();
  const sections = Object.entries(profiles).map(([name, profile]) =>
    [`[profile:${name}]`, ...Object.entries(profile).map(([key, value]) => `${key} = ${value}`), ""].join(
      "\n",
    ),
  );
  writeFiles(configuration, { "auth.ini": sections.join("") });
  const environment = { BOUGH_HOME: temporaryDirectory(), CONTREE_HOME: configuration, S: "secret" };
  return async (words: readonly string[], options: Partial<BoughOptions> = {}) => {
    const ran = await runBough(words, { workingDirectory, environment, ...options });
    return { ...ran, json: () => JSON.parse(ran.stdout) };
  };
}

describe("on the engine, and on a service for linux/arm64", () => {
  let arm: ServerProcess;
  let registry: Registry;
  let directory: string;
  let base: string;
  beforeAll(async () => {
    directory = temporaryDirectory();
    registry = await Registry.start();
    await makeBusyboxLayout(join(directory, "layout"), {
      architectures: ["amd64", "arm64"],
      prepare: (root, architecture) => writeFileSync(join(root, "platform"), `${architecture}\n`),
    });
    base = `${registry.host}/base:1`;
    registry.push(`oci:${join(directory, "layout")}:latest`, "base:1");
    arm = await startArm64Server({ BOUGH_HOME: temporaryDirectory() }, "--allow-local-fetch");
    writeFiles(directory, {
      file: "content\n",
      Dockerfile: `FROM --platform=$BUILDPLATFORM ${base} AS tools
ARG BUILDPLATFORM TARGETPLATFORM
RUN --mount=type=secret,id=s echo "on $BUILDPLATFORM for $TARGETPLATFORM with $(cat /run/secrets/s)" > /built
FROM ${base}
COPY --from=tools /built /built
COPY file /file
RUN cat /platform >> /built
`,
      failing: `FROM ${base}\nARG TARGETARCH\nRUN test $TARGETARCH = amd64 && sleep 100 || exit 7\n`,
    });
  });
  afterAll(async () => {
    await arm.stop();
    registry.stop();
  });

  const createHome = () => createBough(directory, { arm });
  const manifest = async (name: string, reference: string) => {
    const accept = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json";
    const url = `http://${registry.host}/v2/${name}/manifests/${reference}`;
    return (await (await fetch(url, { headers: { accept } })).json()) as {
      manifests: { digest: string; platform: { architecture: string } }[];
      layers: { digest: string }[];
    };
  };
  const blob = async (name: string, digest: string) =>
    (await (await fetch(`http://${registry.host}/v2/${name}/blobs/${digest}`)).json()) as {
      predicate: { buildDefinition?: { resolvedDependencies: object[] } };
    };

  test("each platform is built by its own service, and one index names both images", async () => {
    const name = `${registry.host}/app:1`;
    const cache = `type=registry,ref=${registry.host}/cache:1`;
    const shared = ["--secret", "id=s,env=S", "--lock", "bough.lock", "--cache-from", cache];
    const words = ["build", "--docker", ...both, ...onArm, ...shared];
    const options = ["--cache-to", cache, "-t", name, "--push", "--provenance", "--sbom"];
    const files = ["--metadata-file", "metadata.json", "--iidfile", "iid", "."];
    const bough = createHome();
    const built = await bough([...words, ...options, ...files]);
    expect([built.exitCode, built.stderr]).toEqual([0, expect.any(String)]);
    for (const line of [
      `linux/arm64: service: ${arm.url} (profile arm)`,
      "[linux/amd64 tools 3/3] RUN spawned",
      "[linux/arm64 tools 3/3] RUN spawned",
      `as ${name} on ${arm.url}\n`,
    ])
      expect(built.stderr).toContain(line);

    const index = await manifest("app", "1");
    expect(index.manifests.map(({ platform }) => platform.architecture)).toEqual([
      "amd64",
      "arm64",
      "unknown",
      "unknown",
    ]);
    const metadata = JSON.parse(readFileSync(join(directory, "metadata.json"), "utf8"));
    expect(readFileSync(join(directory, "iid"), "utf8")).toBe(metadata["containerimage.digest"]);
    const [own, other] = metadata.platforms;
    expect(metadata.platforms).toEqual([
      { platform: "linux/amd64", image: own.image },
      { platform: "linux/arm64", image: other.image, profile: "arm" },
    ]);
    // The tag names on each service the image for its platform; a cross-compiling stage ran on each service's own.
    for (const [service, image, platform] of [
      ["--local", own.image, "amd64"],
      ["--profile=arm", other.image, "arm64"],
    ]) {
      const listed = await bough([service, "images", name, "-f", "json"]);
      expect(listed.json().map(({ uuid }: { uuid: string }) => uuid)).toEqual([image]);
      const text = `on linux/${platform} for linux/${platform} with secret\n${platform}\n`;
      expect((await bough([service, "cat", `${name}:/built`])).stdout).toBe(text);
    }
    // Each image's provenance has the layers of its own base.
    const bases = (await manifest("base", "1")).manifests;
    for (const [at, { digest }] of bases.entries()) {
      const { layers } = await manifest("base", digest);
      const attestation = await manifest("app", index.manifests[at + 2]?.digest ?? "");
      const blobs = await Promise.all(attestation.layers.map((each) => blob("app", each.digest)));
      const dependencies = blobs.flatMap(
        ({ predicate }) => predicate.buildDefinition?.resolvedDependencies ?? [],
      );
      expect(dependencies).toContainEqual(
        expect.objectContaining({ annotations: { layers: layers.map((layer) => layer.digest) } }),
      );
    }

    // What one build has put into the registry's cache, another machine takes from there, for both platforms.
    const again = await createHome()([...words, "-o", "type=oci,dest=again.tar", "."]);
    expect(again.stderr).toContain("8 of 8 layers cached");
    expect(again.exitCode).toBe(0);
  });

  test("a failure on one service ends the other build, and says how to open the failed step there", async () => {
    const bough = createHome();
    const failed = await bough(["build", "--docker", "-f", "failing", ...both, ...onArm, "."]);
    // Otherwise the other one would take longer than this test may.
    expect(failed.stderr).toContain("[ERROR] linux/arm64: failing:3: the command failed with exit code 7");
    expect(failed.stderr).toMatch(/^ {2}bough -p arm -S build:\w+ shell --failed-step$/m);
    expect(failed.exitCode).toBe(1);
  });

  test("without a service of its own, this machine needs no engine if each platform has one", async () => {
    const bough = createHome();
    writeFiles(directory, { plain: `FROM ${base}\nCOPY file /f\n` });
    const services = [...onArm, "--platform-service", "linux/amd64=arm"];
    const words = ["build", "--docker", "-f", "plain", ...both, ...services, "--format", "json", "."];
    const built = await bough(words, { platform: "darwin" });
    expect(built.stderr).toContain("service:");
    expect(built.json().platforms).toMatchObject([{ profile: "arm" }, { profile: "arm" }]);
  });

  test("bough bake builds each target's platforms there, and no target from another service's image", async () => {
    const bough = createHome();
    const inline = (text: string) => ({ "dockerfile-inline": text, tags: ["x:1"] });
    const platforms = ["linux/amd64", "linux/arm64"];
    writeFiles(directory, {
      "docker-bake.json": JSON.stringify({
        target: {
          one: {
            ...inline(`FROM ${base}\nARG TARGETARCH\nRUN cat /platform && echo one-$TARGETARCH > /file`),
            platforms,
          },
          lib: { ...inline(`FROM ${base}`), platforms: ["linux/arm64"] },
          app: { ...inline("FROM lib\nRUN cat /platform"), contexts: { lib: "target:lib" } },
          two: {
            ...inline(
              "FROM --platform=$BUILDPLATFORM one AS tools\nFROM one\nCOPY --from=tools /file /tools\nRUN cat /platform /file /tools",
            ),
            contexts: { one: "target:one" },
            platforms,
          },
        },
      }),
    });
    const built = await bough(["bake", "one", ...onArm, "--metadata-file", "baked.json"]);
    expect(built.stderr).toMatch(/^\[one linux\/arm64 3\/3\] arm64$/m);
    expect(JSON.parse(readFileSync(join(directory, "baked.json"), "utf8")).one.platforms).toMatchObject([
      { platform: "linux/amd64" },
      { platform: "linux/arm64", profile: "arm" },
    ]);
    const two = await bough(["bake", "two", ...onArm]);
    for (const platform of ["amd64", "arm64"])
      for (const text of [platform, `one-${platform}`])
        expect(two.stderr).toContain(`\n[two linux/${platform} stage-1 3/3] ${text}\n`);
    const linked = await bough(["bake", "app", ...onArm]);
    expect(linked.stderr).toContain("it is made of the target lib, which is built on another service");
    expect(linked.exitCode).toBe(2);
    const same = await bough(["bake", "app", ...onArm, "--set", "app.platform=linux/arm64"]);
    expect(same.stderr).toContain("\n[app 2/2] arm64\n");
    const unused = await bough(["bake", "one", ...onArm, "--platform-service", "linux/s390x=arm"]);
    expect(unused.stderr).toContain(
      "--platform-service linux/s390x=arm: no target has the platform linux/s390x",
    );
    expect(unused.exitCode).toBe(2);
  });
});

describe("before anything is built,", () => {
  let services: FakeService[];
  let profiles: Record<string, Profile>;
  let directory: string;
  beforeAll(async () => {
    directory = temporaryDirectory();
    writeFiles(directory, { Dockerfile: "FROM base:1\nRUN make\n" });
    await makeBusyboxLayout(join(directory, "layout"));
    const saying = (platform: string | undefined) =>
      startFakeService({
        intercept: ({ url, headers }) => {
          if (!headers.get("authorization")?.includes("t0ken")) return new Response("{}", { status: 401 });
          return url.endsWith("/v1/whoami") && platform ? Response.json({ platform }) : undefined;
        },
      });
    services = [await saying("linux/amd64"), await saying("linux/s390x"), await saying(undefined)];
    const [main = {}, arm = {}, silent = {}] = services.map(
      ({ url }): Profile => ({ url, token: "t0ken-t0ken" }),
    );
    profiles = {
      main,
      arm,
      silent,
      tokenless: { url: arm?.url },
      nowhere: { token: "t0ken" },
    };
    for (const { state } of services) state.addImage("base:1");
  });
  afterAll(() => Promise.all(services.map((service) => service.close())));

  test.each<[string, string[], string, string]>([
    [
      "an unknown profile",
      [...both, "--platform-service", "linux/arm64=amr"],
      '--platform-service linux/arm64=amr: there is no profile "amr" (--platform-service)',
      "Known profiles: arm, main, nowhere, silent, tokenless.",
    ],
    [
      "a profile without an address",
      [...both, "--platform-service", "linux/arm64=nowhere"],
      "--platform-service linux/arm64=nowhere: profile nowhere: the service's address is missing",
      "Add url = https://... to the profile, or give --url: bough has no default address.",
    ],
    [
      "a platform that is named twice",
      [...both, ...onArm, "--platform-service", "aarch64=main"],
      "--platform-service aarch64=main: --platform-service linux/arm64=arm has named a service for linux/arm64",
      "Give each platform one.",
    ],
    [
      "a platform that is not built",
      ["--platform", "linux/amd64", ...onArm],
      "--platform-service linux/arm64=arm: --platform does not have linux/arm64",
      "Give all platforms: --platform linux/amd64,linux/arm64",
    ],
    [
      "a platform without a profile",
      [...both, "--platform-service", "linux/arm64"],
      '--platform-service takes PLATFORM=PROFILE, not "linux/arm64"',
      "For example: --platform-service linux/arm64=arm. `bough auth` saves and lists profiles.",
    ],
    [
      "a service of another platform",
      [...both, ...onArm],
      "--platform-service linux/arm64=arm: --platform linux/arm64: the service runs only linux/s390x",
      "Leave --platform out, or build on a service of that platform.",
    ],
    [
      "a service that does not say which platform it runs",
      [...both, "--platform-service", "linux/arm64=silent"],
      "--platform-service linux/arm64=silent: --platform linux/arm64: the service runs only linux/amd64",
      "It does not say which platform it runs, and is taken for linux/amd64. If it wants another token, `bough -p silent auth` saves one with the profile.",
    ],
    [
      "a service that wants a token",
      [...both, "--platform-service", "linux/arm64=tokenless"],
      "--platform-service linux/arm64=tokenless: --platform linux/arm64: the service runs only linux/amd64",
      "It does not say which platform it runs, and is taken for linux/amd64. If it wants another token, `bough -p tokenless auth` saves one with the profile.",
    ],
    [
      "a layout of this machine",
      ["--local", ...both, ...onArm, "--build-context", "base=oci-layout://layout"],
      "--platform-service linux/arm64=arm: --build-context base=oci-layout://...: the service can't read files of this machine",
      "Push the image to a registry and give base=docker-image://REFERENCE, or build on the embedded engine (--local).",
    ],
  ])("%s is refused", async (_, words, message, hint) => {
    const bough = createBough(directory, profiles);
    const service = words.includes("--local") ? [] : ["-p", "main"];
    const { exitCode, stderr } = await bough([...service, "build", "--docker", ...words, "."]);
    expect(stderr).toContain(`[ERROR] ${message}`);
    expect(stderr).toContain(`\n${hint}\n`);
    expect(exitCode).toBe(2);
    for (const { state } of services) expect(state.instances).toEqual([]);
  });
});
