/** The types that docker buildx has for images: templates name their fields. */
import {
  anything,
  boolean,
  bytes,
  digest,
  type GoType,
  integer,
  listOf,
  mapOf,
  struct,
  text,
  time,
} from "../../templates/schema.ts";

const texts = listOf(text, "string");
const textMap = mapOf(text, "string");
const nothings = mapOf(struct("struct {}", {}), "struct {}");

const platform = (isPointer: boolean) =>
  struct(
    "v1.Platform",
    {
      Architecture: [text, "architecture"],
      OS: [text, "os"],
      OSVersion: [text, "os.version", "omitempty"],
      OSFeatures: [texts, "os.features", "omitempty"],
      Variant: [text, "variant", "omitempty"],
    },
    isPointer,
  );

const descriptorOf = (name: string) =>
  struct(name, {
    MediaType: [text, "mediaType"],
    Digest: [digest, "digest"],
    Size: [integer, "size"],
    URLs: [texts, "urls", "omitempty"],
    Annotations: [textMap, "annotations", "omitempty"],
    Data: [bytes, "data", "omitempty"],
    Platform: [platform(true), "platform", "omitempty"],
    ArtifactType: [text, "artifactType", "omitempty"],
  });

/** The descriptor of an image, as the value of an `interface{}`. */
export const manifest = descriptorOf("interface {}");

/** An index with its own digest and size, as the value of an `interface{}`. */
export const index: GoType = struct("interface {}", {
  SchemaVersion: [integer, "schemaVersion"],
  MediaType: [text, "mediaType", "omitempty"],
  Digest: [digest, "digest"],
  Size: [integer, "size"],
  Manifests: [listOf(descriptorOf("v1.Descriptor"), "v1.Descriptor"), "manifests"],
  Annotations: [textMap, "annotations", "omitempty"],
});

const imageConfig = struct("v1.ImageConfig", {
  User: [text, "User", "omitempty"],
  ExposedPorts: [nothings, "ExposedPorts", "omitempty"],
  Env: [texts, "Env", "omitempty"],
  Entrypoint: [texts, "Entrypoint", "omitempty"],
  Cmd: [texts, "Cmd", "omitempty"],
  Volumes: [nothings, "Volumes", "omitempty"],
  WorkingDir: [text, "WorkingDir", "omitempty"],
  Labels: [textMap, "Labels", "omitempty"],
  StopSignal: [text, "StopSignal", "omitempty"],
  ArgsEscaped: [boolean, "ArgsEscaped", "omitempty"],
});

const history = struct("v1.History", {
  Created: [time, "created", "omitempty"],
  CreatedBy: [text, "created_by", "omitempty"],
  Author: [text, "author", "omitempty"],
  Comment: [text, "comment", "omitempty"],
  EmptyLayer: [boolean, "empty_layer", "omitempty"],
});

/** `*v1.Image`, an image's configuration. */
export const image: GoType = struct(
  "v1.Image",
  {
    Created: [time, "created", "omitempty"],
    Author: [text, "author", "omitempty"],
    Platform: [platform(false), undefined],
    Config: [imageConfig, "config", "omitempty"],
    RootFS: [
      struct("v1.RootFS", {
        Type: [text, "type"],
        DiffIDs: [listOf(digest, "digest.Digest"), "diff_ids"],
      }),
      "rootfs",
    ],
    History: [listOf(history, "v1.History"), "history", "omitempty"],
  },
  true,
);

export const provenance: GoType = struct("imagetools.provenanceStub", {
  SLSA: [anything, "SLSA", "omitempty"],
});

export const sbom: GoType = struct("imagetools.sbomStub", {
  SPDX: [anything, "SPDX", "omitempty"],
  AdditionalSPDXs: [listOf(anything, "interface {}"), "AdditionalSPDXs", "omitempty"],
});
