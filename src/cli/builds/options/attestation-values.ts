/** What a value of `--provenance` looks like, where the word behind it may be something else. */
export const provenanceValue =
  /^(true|false|[10]|(mode|builder-id|version|disabled|reproducible|inline-only|filename)=.*)$/;

export const sbomValue = /^(true|false|[10]|(generator|disabled|filename|scan-\w+|[A-Z_]+)=.*)$/;
