import type { Runtime } from "../../process/runtime.ts";

/** The parts of the name of a build for docker buildx: a builder, its node, and the build. */
interface BuildRef {
  builder: string;
  node: string;
  id: string;
}

/** Returns the name of a build for docker buildx. bough has one builder, but scripts name those that they have made. */
export function buildRefOf(id: string, { environment }: Pick<Runtime, "environment">): BuildRef {
  const { BUILDX_BUILDER: given = "" } = environment;
  const builder = /^[a-zA-Z0-9][\w.-]*$/.test(given) ? given : "default";
  return { builder, node: builder, id };
}

export function formatBuildRef({ builder, node, id }: BuildRef): string {
  return `${builder}/${node}/${id}`;
}
