/** Annotations of an image's parts: https://github.com/opencontainers/image-spec/blob/main/annotations.md */

/** The parts, by the names of docker buildx. A descriptor is the part's entry in an index, or in a layout's list of images. */
export const annotatedParts = ["manifest", "manifest-descriptor", "index", "index-descriptor"] as const;
export type AnnotatedPart = (typeof annotatedParts)[number];

export type Annotations = Readonly<Partial<Record<AnnotatedPart, ReadonlyMap<string, string>>>>;

/** Returns the field of a part, sorted so that the same annotations make the same bytes. Returns no field if there are none. */
export function annotationField(
  part: AnnotatedPart,
  annotations: Annotations | undefined,
): { annotations?: Record<string, string> } {
  const own = [...(annotations?.[part] ?? [])];
  if (own.length === 0) return {};
  return { annotations: Object.fromEntries(own.sort(([one], [other]) => (one < other ? -1 : 1))) };
}
