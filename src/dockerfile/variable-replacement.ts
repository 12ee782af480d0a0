import type { Instruction } from "./instruction.ts";

/**
 * Who replaces the variables in an instruction's words (Dockerfile reference, "Environment replacement"): the build; only a build
 * that keeps configurations; the build in a RUN's mounts, and its shell elsewhere; a shell when a command runs; or nobody.
 */
type Replacement = "build" | "configuration" | "mounts" | "shell" | "none";

const replacements: Record<Instruction["name"], Replacement> = {
  // Replaced before the stages, from the ARGs above them.
  FROM: "none",
  ADD: "build",
  ARG: "build",
  CMD: "shell",
  COPY: "build",
  ENTRYPOINT: "shell",
  ENV: "build",
  EXPOSE: "configuration",
  HEALTHCHECK: "shell",
  LABEL: "configuration",
  MAINTAINER: "none",
  ONBUILD: "shell",
  RUN: "mounts",
  SHELL: "shell",
  STOPSIGNAL: "configuration",
  USER: "build",
  VOLUME: "configuration",
  WORKDIR: "build",
};

/** Returns true if the build, not a shell, replaces variables of the instruction. */
export function replacesVariables(name: Instruction["name"], keepsConfiguration: boolean): boolean {
  const replacement = replacements[name];
  return (
    replacement === "build" ||
    replacement === "mounts" ||
    (replacement === "configuration" && keepsConfiguration)
  );
}

/** Returns true if Docker warns of an undefined variable that a build replaces: of one in an EXPOSE it does not. */
export function warnsOfUndefined(name: Instruction["name"], keepsConfiguration: boolean): boolean {
  return name !== "EXPOSE" && replacesVariables(name, keepsConfiguration);
}
