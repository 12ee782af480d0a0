FROM base
CMD ["serve"]
