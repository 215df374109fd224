"""What a photographer uses: pretrained networks on image files of any size."""
