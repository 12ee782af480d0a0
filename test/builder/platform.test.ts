import { describe, expect, test } from "bun:test";
import { dependsOnPlatform, platformArguments } from "../../src/builder/state/platform.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { chooseBestImage, formatPlatform, type Platform, parsePlatform } from "../../src/image/platform.ts";

describe("a platform is normalised as containerd does:", () => {
  test.each([
    ["linux/amd64", "linux/amd64"],
    ["Linux/AMD64", "linux/amd64"],
    ["amd64", "linux/amd64"],
    ["x86_64", "linux/amd64"],
    ["linux/x86-64", "linux/amd64"],
    ["linux/amd64/v1", "linux/amd64"],
    ["linux/amd64/v3", "linux/amd64/v3"],
    ["linux/arm64", "linux/arm64"],
    ["linux/arm64/v8", "linux/arm64"],
    ["aarch64", "linux/arm64"],
    ["linux/arm", "linux/arm/v7"],
    ["linux/arm/v6", "linux/arm/v6"],
    ["linux/armhf", "linux/arm/v7"],
    ["armel", "linux/arm/v6"],
    ["linux/i386", "linux/386"],
    ["windows/amd64", "windows/amd64"],
    ["macos/arm64", "darwin/arm64"],
  ])("%s is %s", (given, spelt) => expect(formatPlatform(parsePlatform(given))).toBe(spelt));

  test.each([
    "",
    "linux",
    "all",
    "local",
    "constructor",
    "linux/",
    "/amd64",
    "linux/arm/v7/x",
    "linux/am d64",
    "*",
  ])("%j is invalid", (given) => expect(() => parsePlatform(given)).toThrow("invalid platform"));
});

test.each([
  ["linux/arm/v7", ["linux/arm/v5", "linux/arm/v6", "linux/arm64"], "linux/arm/v6"],
  ["linux/arm/v6", ["linux/arm/v7"], undefined],
  ["linux/amd64/v2", ["linux/amd64/v3", "linux/amd64"], "linux/amd64"],
  ["linux/amd64/v3", ["linux/amd64", "linux/amd64/v2"], "linux/amd64/v2"],
  ["linux/arm64/v9", ["linux/arm64/v8.2", "linux/arm64"], "linux/arm64/v8.2"],
  ["linux/arm64", ["linux/arm64/v9", "linux/arm64"], "linux/arm64"],
  ["linux/amd64", ["linux/amd64/v2"], "linux/amd64/v2"],
  ["linux/ppc64le/power9", ["linux/ppc64le/power8", "linux/ppc64le/power9"], "linux/ppc64le/power9"],
  ["linux/ppc64le/power9", ["linux/ppc64le"], undefined],
  ["linux/amd64", ["windows/amd64", "linux/386"], undefined],
] as const)("for %s, the best of %j is %s", (wanted, images, best) => {
  expect(chooseBestImage(images, parsePlatform(wanted), parsePlatform)).toBe(best);
});

test("TARGET and BUILD arguments tell the image's platform and the service's", () => {
  const [build, target] = ["linux/amd64", "linux/arm/v7"].map(parsePlatform) as [Platform, Platform];
  expect(Object.fromEntries(platformArguments({ build, target }))).toEqual({
    BUILDPLATFORM: "linux/amd64",
    BUILDOS: "linux",
    BUILDOSVERSION: "",
    BUILDARCH: "amd64",
    BUILDVARIANT: "",
    TARGETPLATFORM: "linux/arm/v7",
    TARGETOS: "linux",
    TARGETOSVERSION: "",
    TARGETARCH: "arm",
    TARGETVARIANT: "v7",
  });
});

describe("the service's platform is requested if the Dockerfile depends on it:", () => {
  test.each([
    ["FROM --platform=linux/amd64 a", true],
    ["FROM a:${TARGETARCH}", true],
    ["ARG NAME=$BUILDOS\nFROM a:$NAME", true],
    ["FROM a\nARG TARGETARCH", true],
    ["FROM a\nRUN echo $TARGETARCH", false],
    ["ARG VERSION\nFROM a:$VERSION", false],
  ])("%j: %p", (text, depends) =>
    expect(dependsOnPlatform(parseDockerfile(text, "Dockerfile"))).toBe(depends),
  );
});
