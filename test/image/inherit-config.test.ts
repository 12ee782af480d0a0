import { describe, expect, test } from "bun:test";
import { type ImageConfig, inheritConfig } from "../../src/image/config.ts";

const base: ImageConfig = {
  Env: ["PATH=/bin", "A=base"],
  Entrypoint: ["/init"],
  Cmd: ["serve"],
  User: "7",
  WorkingDir: "/srv",
  Labels: { a: "base", b: "base" },
  ExposedPorts: { "80/tcp": {} },
  OnBuild: ["RUN trigger"],
};
const { OnBuild: _, ...inherited } = base;
const { Cmd: __, ...withoutCommand } = inherited;

describe("an image inherits from its base", () => {
  test.each<[string, ImageConfig, ImageConfig]>([
    ["everything that it does not set itself, except ONBUILD triggers", {}, inherited],
    ["variables of other names", { Env: ["A=own"] }, { ...inherited, Env: ["PATH=/bin", "A=own"] }],
    ["no CMD if it sets an ENTRYPOINT", { Entrypoint: ["x"] }, { ...withoutCommand, Entrypoint: ["x"] }],
    ["the ENTRYPOINT if it sets a CMD", { Cmd: ["x"] }, { ...inherited, Cmd: ["x"] }],
    [
      "labels and ports, merged with its own",
      { Labels: { b: "own" }, ExposedPorts: { "81/tcp": {} } },
      { ...inherited, Labels: { a: "base", b: "own" }, ExposedPorts: { "80/tcp": {}, "81/tcp": {} } },
    ],
  ])("%s", (_name, own, expected) => {
    expect(inheritConfig(base, own, { hasAllButEnv: false })).toEqual(expected);
  });

  test("only variables if the rest is known", () => {
    expect(inheritConfig(base, { User: "8" }, { hasAllButEnv: true })).toEqual({
      User: "8",
      Env: ["PATH=/bin", "A=base"],
    });
    expect(inheritConfig({}, { User: "8" }, { hasAllButEnv: true })).toEqual({ User: "8" });
  });
});
