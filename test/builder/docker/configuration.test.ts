import { describe, expect, test } from "bun:test";
import { configure } from "../../../src/builder/docker/configuration.ts";
import type { ConfigurationInstruction, Instruction } from "../../../src/dockerfile/instruction.ts";
import { parseDockerfile } from "../../../src/dockerfile/parse.ts";
import type { ImageConfig } from "../../../src/image/config.ts";

const variables: Readonly<Record<string, string>> = { PATH: "/bin", P: "70 71" };

function configureAll(lines: readonly string[], base: ImageConfig): ImageConfig {
  const { instructions } = parseDockerfile(["FROM x", ...lines, ""].join("\n"), "Dockerfile");
  let config = base;
  let ownsCmd = false;
  for (const instruction of instructions.slice(1)) {
    if (!isConfiguration(instruction)) throw new Error(instruction.name);
    const words = { lookup: (name: string) => variables[name], isKnown: () => true, escape: "\\" } as const;
    config = configure(config, instruction, { ...words, ownsCmd });
    ownsCmd ||= instruction.name === "CMD";
  }
  return config;
}

function isConfiguration(instruction: Instruction): instruction is ConfigurationInstruction {
  return !["FROM", "RUN", "COPY", "ADD", "WORKDIR", "ENV", "ARG", "USER"].includes(instruction.name);
}

describe("an image's configuration, as Docker 20.10 makes it", () => {
  const ash = ["/bin/ash", "-c"];
  test.each<[lines: string[], base: ImageConfig, expected: ImageConfig]>([
    [["CMD echo $X"], {}, { Cmd: ["/bin/sh", "-c", "echo $X"], ArgsEscaped: true }],
    [['CMD ["a", "$X"]'], { Shell: ash }, { Shell: ash, Cmd: ["a", "$X"], ArgsEscaped: true }],
    [['SHELL ["/bin/ash", "-c"]', "CMD a"], {}, { Shell: ash, Cmd: [...ash, "a"], ArgsEscaped: true }],
    [["CMD"], {}, { Cmd: ["/bin/sh", "-c", ""], ArgsEscaped: true }],
    [['ENTRYPOINT ["a"]'], { Cmd: ["inherited"] }, { Entrypoint: ["a"] }],
    [['CMD ["own"]', 'ENTRYPOINT ["a"]'], {}, { Cmd: ["own"], ArgsEscaped: true, Entrypoint: ["a"] }],
    [
      ["LABEL a=1 b=\"$PATH\" 'c d'=e", "LABEL a=2"],
      { Labels: { z: "0" } },
      { Labels: { z: "0", a: "2", b: "/bin", "c d": "e" } },
    ],
    [
      ["EXPOSE 80 53/UDP 8000-8002 $P 127.0.0.1:90:91/tcp"],
      { ExposedPorts: { "1/tcp": {} } },
      {
        ExposedPorts: {
          ...{ "1/tcp": {}, "80/tcp": {}, "53/udp": {}, "8000/tcp": {}, "8001/tcp": {}, "8002/tcp": {} },
          ...{ "70/tcp": {}, "71/tcp": {}, "91/tcp": {} },
        },
      },
    ],
    [["VOLUME /a $P", 'VOLUME ["/b"]'], {}, { Volumes: { "/a": {}, "/b": {}, "70 71": {} } }],
    [["STOPSIGNAL 9", "STOPSIGNAL sigterm"], {}, { StopSignal: "sigterm" }],
    [["STOPSIGNAL RTMIN+3"], {}, { StopSignal: "RTMIN+3" }],
    [
      ["HEALTHCHECK --interval=1m30s --retries=3 CMD curl $X"],
      {},
      { Healthcheck: { Test: ["CMD-SHELL", "curl $X"], Interval: 90_000_000_000, Retries: 3 } },
    ],
    [["HEALTHCHECK NONE"], { Healthcheck: { Test: ["CMD", "a"] } }, { Healthcheck: { Test: ["NONE"] } }],
    [
      ["ONBUILD RUN a  b \\", "   && c", "ONBUILD COPY --from=x a b"],
      {},
      { OnBuild: ["RUN a  b    && c", "COPY --from=x a b"] },
    ],
    [["MAINTAINER me"], {}, {}],
  ])("%j on %j", (lines, base, expected) => {
    expect(configureAll(lines, base)).toEqual(expected);
  });

  test.each([
    ["EXPOSE 65536", "invalid containerPort: 65536"],
    ["EXPOSE web", "invalid containerPort: web"],
    ["EXPOSE 9-8", "invalid containerPort: 9-8"],
    ["STOPSIGNAL 0", "Invalid signal: 0"],
    ["STOPSIGNAL SIGNONE", "Invalid signal: SIGNONE"],
    ["VOLUME $NONE", "VOLUME specified can not be an empty string"],
  ])("%s is refused", (line, message) => {
    expect(() => configureAll([line], {})).toThrow(message);
  });
});
